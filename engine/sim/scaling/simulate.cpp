#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"
#include "starling/engine/exchange/collective/program.hpp"
#include "starling/engine/sim/scaling/scaling.hpp"

namespace starling::scaling {
namespace {

using collective::ChunkId;
using collective::Instruction;
using collective::Operation;
using collective::Program;
using collective::Rank;

/// Names a piece of a collective's vector on its way.
struct Message {
  std::size_t run = 0;
  Rank from = 0;
  Rank to = 0;
  std::uint32_t round = 0;
  ChunkId chunk = 0;
  std::size_t slice = 0;
};

/// One slice of a chunk at one rank.
struct Slice {
  /// The next instruction.
  std::size_t next = 0;
  /// The round and sender of each message that has arrived and that the rank has not used yet.
  std::vector<std::pair<std::uint32_t, Rank>> arrived = {};
};

/// One rank of a collective.
struct Participant {
  std::size_t node = 0;
  bool has_begun = false;
  /// The number of slices of which instructions are left.
  std::size_t unfinished = 0;
  /// By chunk and slice.
  std::vector<Slice> slices = {};
};

/// A collective of some nodes.
struct Run {
  /// By rank.
  std::shared_ptr<const std::vector<Program>> programs;
  std::vector<Participant> participants = {};
  std::size_t slices = 1;
  double message_bytes = 0;
  /// Messages of the run with the lowest number go first.
  std::size_t priority = 0;
};

/// The next thing that a node does: it computes, takes part in a run, waits for the run, or ends
/// its step.
struct Activity {
  enum class Kind { compute, begin, wait, end_step } kind;
  double seconds = 0;
  std::size_t run = 0;
  Rank rank = 0;
};

struct Node {
  std::vector<Activity> activities = {};
  std::size_t next = 0;
  bool is_computing = false;
  /// By step: when the node ended it, in seconds.
  std::vector<double> steps_ended_at = {};
  // The port.
  bool is_sending = false;
  /// The time, in seconds, at which the port has received everything that was sent to it so far.
  double receives_until = 0;
  /// By priority, then in the order in which the messages were queued.
  std::map<std::pair<std::size_t, std::uint64_t>, Message> queue = {};
};

struct Event {
  enum class Kind { computed, sent, arrived } kind;
  std::size_t node = 0;
  Message message = {};
};

class Simulation {
 public:
  Simulation(const Job& job, std::span<const LayerPlan> plans)
      : network_(job.machine.network), nodes_(job.nodes) {
    for (int step = 0; step < 2; ++step) add_step(plans);
  }

  /// Returns the time of the second step.
  double run() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) go_on(node);
    while (!events_.empty()) {
      const auto first = events_.begin();
      now_ = first->first.first;
      const Event event = first->second;
      events_.erase(first);
      handle(event);
    }
    double first_ended_at = 0;
    double second_ended_at = 0;
    for (const Node& node : nodes_) {
      STARLING_CHECK(node.next == node.activities.size());
      first_ended_at = std::max(first_ended_at, node.steps_ended_at.at(0));
      second_ended_at = std::max(second_ended_at, node.steps_ended_at.at(1));
    }
    return second_ended_at - first_ended_at;
  }

 private:
  // --- the nodes' activities ---

  void add_step(std::span<const LayerPlan> plans) {
    std::vector<std::vector<std::size_t>> gradients(plans.size());
    for (std::size_t l = plans.size(); l-- > 0;) {
      add_to_all({Activity::Kind::compute, plans[l].pass_seconds});
      gradients[l] = add_gradient_runs(plans[l], l + 1);
      add_to_all({Activity::Kind::compute, plans[l].pass_seconds});
      add_group_runs(plans[l], Operation::reduce_scatter);
    }
    for (std::size_t l = 0; l < plans.size(); ++l) {
      for (const std::size_t run : gradients[l]) add_to_members(run, Activity::Kind::wait);
      add_group_runs(plans[l], Operation::all_gather);
      add_to_all({Activity::Kind::compute, plans[l].pass_seconds});
    }
    add_to_all({Activity::Kind::end_step});
  }

  void add_to_all(const Activity& activity) {
    for (Node& node : nodes_) node.activities.push_back(activity);
  }

  void add_to_members(std::size_t run, Activity::Kind kind) {
    for (Rank rank = 0; rank < runs_[run].participants.size(); ++rank)
      nodes_[runs_[run].participants[rank].node].activities.push_back({kind, 0, run, rank});
  }

  /// Adds a run in which the nodes `first`, `first` + `stride`, ... take part. Each of these nodes
  /// begins the run as its next activity.
  std::size_t add_run(Operation operation, const Exchange& exchange, std::size_t first,
                      std::size_t stride, std::size_t priority) {
    auto& programs = programs_[{operation, exchange.members}];
    if (!programs) programs = make_programs(operation, exchange.members);
    const std::size_t pieces = programs->front().chunks.size() * exchange.slices;
    Run run{.programs = programs,
            .slices = exchange.slices,
            .message_bytes = exchange.bytes / static_cast<double>(pieces),
            .priority = priority};
    for (std::size_t i = 0; i < exchange.members; ++i)
      run.participants.push_back(
          {.node = first + i * stride, .unfinished = pieces, .slices = std::vector<Slice>(pieces)});
    runs_.push_back(std::move(run));
    add_to_members(runs_.size() - 1, Activity::Kind::begin);
    return runs_.size() - 1;
  }

  static std::shared_ptr<const std::vector<Program>> make_programs(Operation operation,
                                                                   std::size_t members) {
    const auto schedule =
        collective::make_schedule(collective::Parts{}, operation, members, 0).value();
    std::vector<Program> programs;
    for (Rank rank = 0; rank < members; ++rank) programs.push_back(make_program(schedule, rank));
    return std::make_shared<const std::vector<Program>>(std::move(programs));
  }

  /// The nodes at the same position of their groups sum what they have of the layer. Nodes g M to
  /// g M + M - 1 are group g, of M nodes.
  std::vector<std::size_t> add_gradient_runs(const LayerPlan& plan, std::size_t priority) {
    std::vector<std::size_t> runs;
    if (plan.gradient.members == 1) return runs;
    const std::size_t in_group = nodes_.size() / plan.groups;
    for (std::size_t position = 0; position < in_group; ++position)
      runs.push_back(add_run(Operation::all_reduce, plan.gradient, position, in_group, priority));
    return runs;
  }

  /// The nodes of each group exchange activations, and wait for them.
  void add_group_runs(const LayerPlan& plan, Operation operation) {
    const Exchange& exchange = plan.activations;
    if (exchange.members == 1) return;
    for (std::size_t g = 0; g < plan.groups; ++g)
      add_to_members(add_run(operation, exchange, g * exchange.members, 1, 0),
                     Activity::Kind::wait);
  }

  // --- events ---

  void schedule(double at, const Event& event) {
    events_.emplace(std::pair{at, scheduled_++}, event);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::computed:
        nodes_[event.node].is_computing = false;
        return go_on(event.node);
      case Event::Kind::sent:
        nodes_[event.node].is_sending = false;
        return send_next(event.node);
      case Event::Kind::arrived:
        return receive(event.message);
    }
  }

  /// Lets the node do all that it can do now.
  void go_on(std::size_t id) {
    Node& node = nodes_[id];
    while (!node.is_computing && node.next < node.activities.size()) {
      const Activity activity = node.activities[node.next];
      if (activity.kind == Activity::Kind::wait && !is_finished(activity)) return;
      ++node.next;
      if (activity.kind == Activity::Kind::compute) {
        node.is_computing = true;
        schedule(now_ + activity.seconds, {.kind = Event::Kind::computed, .node = id});
      } else if (activity.kind == Activity::Kind::begin) {
        begin(activity.run, activity.rank);
      } else if (activity.kind == Activity::Kind::end_step) {
        node.steps_ended_at.push_back(now_);
      }
    }
  }

  [[nodiscard]] bool is_finished(const Activity& activity) const {
    const Participant& participant = runs_[activity.run].participants[activity.rank];
    return participant.has_begun && participant.unfinished == 0;
  }

  // --- collectives ---

  void begin(std::size_t run, Rank rank) {
    runs_[run].participants[rank].has_begun = true;
    // Members begin with different chunks, so that they do not all send to the same one first.
    const std::size_t chunks = runs_[run].programs->at(rank).chunks.size();
    for (std::size_t c = 0; c < chunks; ++c)
      for (std::size_t slice = 0; slice < runs_[run].slices; ++slice)
        execute({.run = run,
                 .to = rank,
                 .chunk = static_cast<ChunkId>((rank + 1 + c) % chunks),
                 .slice = slice});
    send_next(runs_[run].participants[rank].node);
  }

  void receive(const Message& message) {
    Participant& receiver = runs_[message.run].participants[message.to];
    receiver.slices[message.chunk * runs_[message.run].slices + message.slice].arrived.emplace_back(
        message.round, message.from);
    if (!receiver.has_begun) return;
    execute(message);
    send_next(receiver.node);
    go_on(receiver.node);
  }

  /// Executes the instructions of rank `at.to` for a slice of a chunk, as far as messages are
  /// there.
  void execute(const Message& at) {
    Run& run = runs_[at.run];
    Participant& self = run.participants[at.to];
    Slice& slice = self.slices[at.chunk * run.slices + at.slice];
    const auto& instructions = run.programs->at(at.to).instructions[at.chunk];
    for (; slice.next < instructions.size(); ++slice.next) {
      const Instruction& instruction = instructions[slice.next];
      if (instruction.kind == Instruction::Kind::send) {
        nodes_[self.node].queue.emplace(std::pair{run.priority, messages_++},
                                        Message{.run = at.run,
                                                .from = at.to,
                                                .to = instruction.peer,
                                                .round = instruction.round,
                                                .chunk = at.chunk,
                                                .slice = at.slice});
        continue;
      }
      const auto found =
          std::ranges::find(slice.arrived, std::pair{instruction.round, instruction.peer});
      if (found == slice.arrived.end()) return;
      slice.arrived.erase(found);
    }
    --self.unfinished;
  }

  // --- ports ---

  void send_next(std::size_t id) {
    Node& node = nodes_[id];
    if (node.is_sending || node.queue.empty()) return;
    const Message message = node.queue.begin()->second;
    node.queue.erase(node.queue.begin());
    const Run& run = runs_[message.run];
    const double seconds = network_.latency_s + run.message_bytes / network_.bytes_per_second;
    Node& receiver = nodes_[run.participants[message.to].node];
    receiver.receives_until = std::max(now_, receiver.receives_until) + seconds;
    node.is_sending = true;
    schedule(now_ + seconds, {.kind = Event::Kind::sent, .node = id});
    schedule(receiver.receives_until, {.kind = Event::Kind::arrived, .message = message});
  }

  collective::Network network_;
  std::vector<Node> nodes_;
  std::vector<Run> runs_;
  std::map<std::pair<Operation, std::size_t>, std::shared_ptr<const std::vector<Program>>>
      programs_;
  double now_ = 0;
  /// By time, then in the order in which the events were scheduled.
  std::map<std::pair<double, std::uint64_t>, Event> events_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t messages_ = 0;
};

}  // namespace

double simulate(const Job& job, std::span<const LayerPlan> plans) {
  STARLING_CHECK(plans.size() == job.layers.size());
  return Simulation{job, plans}.run();
}

}  // namespace starling::scaling
