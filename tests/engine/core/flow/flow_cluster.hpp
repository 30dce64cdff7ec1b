/// A job of the role Flow in virtual time: real MemberCores over a network that loses, duplicates,
/// reorders and cuts, with members that die, join and are slow. Each member runs the program on a
/// thread of its own, but only one thread runs at a time, so that a seed always gives the same run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/flow/action_builder.hpp"
#include "starling/engine/core/flow/output_store.hpp"
#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"
#include "tests/engine/core/flow/program_thread.hpp"

namespace starling::core {

struct FlowClusterOptions {
  MemberId members = 4;
  std::uint64_t seed = 1;
  double loss = 0;
  std::uint32_t slots = 2;
  std::uint32_t attempts_max = 2;
  /// FlowOptions::speculation_after_min.
  Time speculation_after_min = FlowOptions{}.speculation_after_min;
  std::size_t memory_bytes = std::size_t{1} << 20U;
  std::size_t chunk_bytes = 100;
  /// Called with each request for pieces.
  std::function<void(const PieceRequest&)> on_read = {};
  /// Called with each chunk before it is sent, and with the sender's records; may change it.
  std::function<void(PieceChunk&, OutputStore&)> on_chunk = {};
  /// Called before a task runs; may throw.
  std::function<void(MemberId, const PartName&)> on_task = {};
};

class FlowCluster {
 public:
  FlowCluster(FlowClusterOptions options, FlowProgram program)
      : options_(std::move(options)),
        program_(std::move(program)),
        network_(link(), options_.seed),
        random_(Random::stream(options_.seed, 1)) {
    std::vector<Member> members;
    for (MemberId id = 0; id < options_.members; ++id) members.push_back({id, 1, true, true, id});
    const auto first =
        std::make_shared<const Configuration>(first_configuration(std::move(members), 0, 2, true));
    for (MemberId id = 0; id < options_.members; ++id) start({id, 1, true, true, id}, first);
    queue_.push(detect_every, Event{Detect{}});
  }

  // --- faults -----------------------------------------------------------------------------------

  void kill(MemberId id) {
    if (machines_.contains(id)) died_at_[id] = queue_.now();
    machines_.erase(id);
  }
  /// A new incarnation of a member that is gone, or a new member, joins and runs the program.
  void join(MemberId id) {
    if (machines_.contains(id)) return;
    died_at_.erase(id);
    start({id, ++incarnations_[id], true, true, id}, nullptr);
  }
  void block(MemberId a, MemberId b) {
    network_.block(a, b);
    network_.block(b, a);
    blocked_at_.emplace(std::minmax(a, b), queue_.now());
  }
  void heal() {
    network_.heal();
    blocked_at_.clear();
  }
  void slow_down(MemberId id, double factor) { factors_[id] = factor; }
  /// Calls `act` at a time.
  void at(Time time, std::function<void()> act) { queue_.push(time, Event{std::move(act)}); }

  // --- running ----------------------------------------------------------------------------------

  /// Runs until all members have ended, or for some minutes of virtual time. Returns whether they
  /// have.
  bool run() {
    const Time limit = queue_.now() + std::chrono::minutes{10};
    while (!queue_.empty() && queue_.next_at() < limit && !has_ended()) {
      Event event = queue_.pop();
      std::visit([this](auto& e) { handle(e); }, event);
    }
    return has_ended();
  }
  [[nodiscard]] bool has_ended() const {
    return std::ranges::all_of(machines_, [](const auto& machine) {
      return machine.second->has_ended && machine.second->program->has_returned();
    });
  }
  [[nodiscard]] std::vector<MemberId> members() const {
    std::vector<MemberId> ids;
    for (const auto& [id, machine] : machines_) ids.push_back(id);
    return ids;
  }
  [[nodiscard]] const Result<std::string>& outcome(MemberId id) const {
    return machines_.at(id)->program->outcome();
  }
  [[nodiscard]] std::optional<MemberId> coordinator() const {
    for (const auto& [id, machine] : machines_)
      if (machine->core->configuration()) return machine->core->configuration()->coordinator;
    return std::nullopt;
  }
  [[nodiscard]] Time now() const { return queue_.now(); }
  /// How many tasks have run, and how often each part was computed.
  [[nodiscard]] const std::map<PartName, int>& computed() const { return computed_; }
  /// The most bytes of records that one member has held in memory.
  [[nodiscard]] std::size_t peak_reserved() const { return peak_reserved_; }
  /// Returns the most bytes that the outputs on one member take now.
  [[nodiscard]] std::size_t reserved() const {
    std::size_t most = 0;
    for (const auto& [id, machine] : machines_) most = std::max(most, machine->memory->reserved());
    return most;
  }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  static constexpr Time detect_every = std::chrono::milliseconds{100};
  static constexpr Time dead_after = std::chrono::milliseconds{300};
  static constexpr MemberId members_max = 16;

  struct Machine {
    Machine(const FlowCluster& cluster, const FlowProgram& flow_program)
        : memory(std::make_shared<TestTaskMemory>(cluster.options_.memory_bytes)),
          store(memory, cluster.options_.chunk_bytes),
          program(std::make_shared<ProgramThread>(flow_program)) {}
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() { program->kill(); }

    std::shared_ptr<TestTaskMemory> memory;
    std::unique_ptr<MemberCore> core;
    OutputStore store;
    ActionBuilder builder;
    std::shared_ptr<ProgramThread> program;
    Incarnation incarnation = 0;
    bool has_begun = false;
    bool has_ended = false;
    /// True if the program waits for the outputs of the last stage.
    std::optional<bool> gathers = {};
    ActionId actions_ended = 0;
  };
  struct TimerDue {
    MemberId id;
    Incarnation incarnation;
    TimerKey key;
  };
  struct TaskDue {
    MemberId id;
    Incarnation incarnation;
    PartName name;
    std::shared_ptr<OutputStore::RunnableTask> runnable;
  };
  struct Detect {};
  using Event = std::variant<Envelope, TimerDue, TaskDue, Detect, std::function<void()>>;

  [[nodiscard]] sim::LinkOptions link() const {
    sim::LinkOptions link;
    link.latency = Distribution{laws::Exponential{std::chrono::milliseconds{2}}};
    link.loss = link.duplication = link.reordering = options_.loss;
    link.delay = Distribution{laws::Exponential{std::chrono::milliseconds{20}}};
    return link;
  }

  void start(const Member& self, const ConfigurationPtr& first) {
    FlowOptions flow;
    flow.slots = options_.slots;
    flow.attempts_max = options_.attempts_max;
    flow.fetches_max = 1 + random_.below(4);
    flow.speculation_after_min = options_.speculation_after_min;
    MemberOptions member;
    member.self = self;
    member.members_max = members_max;
    member.first_configuration = first;
    for (const auto& [id, machine] : machines_) member.seeds.push_back(id);
    member.role = std::make_shared<const FlowOptions>(flow);
    incarnations_[self.id] = self.incarnation;
    auto machine = std::make_unique<Machine>(*this, program_);
    machine->core = std::make_unique<MemberCore>(std::move(member));
    machine->incarnation = self.incarnation;
    machines_[self.id] = std::move(machine);
    run_core(self.id, [](auto& core, const auto& c) { core.start(c); });
  }

  [[nodiscard]] Machine* find(MemberId id, Incarnation incarnation) {
    const auto machine = machines_.find(id);
    return machine == machines_.end() || machine->second->incarnation != incarnation
               ? nullptr
               : machine->second.get();
  }

  void handle(Envelope& envelope) {
    if (machines_.contains(envelope.to))
      run_core(envelope.to, [&](auto& core, const auto& c) { core.on_packet(c, envelope); });
  }
  void handle(const TimerDue& due) {
    if (find(due.id, due.incarnation) != nullptr)
      run_core(due.id, [&](auto& core, const auto& c) { core.on_timer(c, due.key); });
  }
  void handle(const std::function<void()>& act) { act(); }
  void handle(const Detect&) {
    const Time now = queue_.now();
    for (const MemberId a : members()) {
      // A node that reaches few others takes itself for cut off, and says nothing of them.
      const auto blocked_from = std::ranges::count_if(blocked_at_, [a](const auto& blocked) {
        return blocked.first.first == a || blocked.first.second == a;
      });
      if (2 * static_cast<std::size_t>(blocked_from) >= incarnations_.size()) continue;
      for (const auto& [b, incarnation] : incarnations_) {
        if (!machines_.contains(a)) break;
        if (a == b) continue;
        const auto died = died_at_.find(b);
        const auto blocked = blocked_at_.find(std::minmax(a, b));
        const bool is_dead = (died != died_at_.end() && now - died->second > dead_after) ||
                             (blocked != blocked_at_.end() && now - blocked->second > dead_after);
        run_core(a, [&, other = b, number = incarnation](auto& core, const auto& c) {
          if (is_dead)
            core.suspect(c, other, number);
          else
            core.trust(c, other, number);
        });
      }
    }
    queue_.push(now + detect_every, Event{Detect{}});
  }
  void handle(const TaskDue& due) {
    Machine* machine = find(due.id, due.incarnation);
    if (machine == nullptr) return;
    TaskEnded ended{due.name, {}, {}};
    try {
      if (due.name.stage.action < machine->actions_ended)
        throw std::runtime_error{"its action has ended"};
      if (options_.on_task) options_.on_task(due.id, due.name);
      machine->store.put(due.name, due.runnable->stage->run(due.runnable->task));
      ended.counts = due.runnable->task.counts();
      ++computed_[due.name];
      peak_reserved_ = std::max(peak_reserved_, machine->memory->reserved());
    } catch (const std::exception& fault) {
      ended.error = fault.what();
    }
    give(due.id, std::move(ended));
  }

  void give(MemberId id, RoleInput input) {
    if (machines_.contains(id))
      run_core(id, [&](auto& core, const auto& c) { core.on_input(c, std::move(input)); });
  }

  /// Calls `event(core, context)` of a member, and executes its effects.
  template <class Call>
  void run_core(MemberId id, Call event) {
    MemberEffects effects;
    event(*machines_.at(id)->core, MemberContext{queue_.now(), random_, effects, nullptr});
    const Incarnation incarnation = machines_.at(id)->incarnation;
    for (MemberEffect& effect : effects) std::visit([&](auto& e) { execute(id, e); }, effect);
    Machine* machine = find(id, incarnation);
    if (machine != nullptr && machine->core->state() == MemberCore::State::excluded) kill(id);
    machine = find(id, incarnation);
    // The program begins with the first configuration.
    if (machine == nullptr || machine->has_begun || !machine->core->configuration()) return;
    if (machine->core->state() != MemberCore::State::member) return;
    machine->has_begun = true;
    machine->program->start(machine->program);
    on_program(id);
  }

  /// The program waits for something else, or has returned.
  void on_program(MemberId id) {
    Machine& machine = *machines_.at(id);
    for (;;) {
      if (machine.program->has_returned()) return give(id, ProgramReturned{});
      const ProgramThread::Request request = *machine.program->request();
      for (const StageName& name : machine.builder.take_released()) give(id, ReleaseStage{name});
      auto built = machine.builder.build(request.stage, request.gathers);
      if (!built) {
        machine.program->resume(std::move(built).error());
        continue;
      }
      machine.gathers = request.gathers;
      machine.store.begin(built->action, std::move(built->plan));
      give(id, BeginAction{built->action});
      if (request.former) give(id, ReleaseStage{machine.builder.name_of(*request.former)});
      return;
    }
  }

  void execute(MemberId id, Dispatch& dispatch) {
    for (const Time at : network_.send(queue_.now(), id, dispatch.envelope.to, 0))
      queue_.push(at, Event{dispatch.envelope});
  }
  void execute(MemberId id, const MemberTimer& timer) {
    queue_.push(timer.at, Event{TimerDue{id, machines_.at(id)->incarnation, timer.key}});
  }
  void execute(MemberId, const Excluded&) {}
  void execute(MemberId id, const Fail& fail) {
    failures_.push_back(std::to_string(id) + ": " + fail.why);
  }
  void execute(MemberId id, const RunTask& run) {
    const auto factor = factors_.find(id);
    const double mean_ms = 5 * (factor == factors_.end() ? 1 : factor->second);
    const auto time = Time{static_cast<std::int64_t>(mean_ms * 1e6 * (0.5 + random_.real()))};
    Machine& machine = *machines_.at(id);
    auto runnable = std::make_shared<OutputStore::RunnableTask>(machine.store.make_task(run, {}));
    queue_.push(queue_.now() + time,
                Event{TaskDue{id, machine.incarnation, run.task, std::move(runnable)}});
  }
  void execute(MemberId id, const ReadPieces& read) {
    if (options_.on_read) options_.on_read(read.request);
    OutputStore& store = machines_.at(id)->store;
    PieceChunks answer = store.execute(read);
    for (PieceChunk& chunk : answer.chunks)
      if (options_.on_chunk) options_.on_chunk(chunk, store);
    give(id, PiecesRead{read.reader, std::move(answer)});
  }
  void execute(MemberId id, const StorePiece& store) {
    give(id, machines_.at(id)->store.execute(store));
  }
  template <class Drop>
  requires requires(OutputStore& store, const Drop& drop) { store.execute(drop); }
  void execute(MemberId id, const Drop& drop) { machines_.at(id)->store.execute(drop); }
  void execute(MemberId id, const ActionEnded& ended) {
    Machine& machine = *machines_.at(id);
    machine.actions_ended = ended.action + 1;
    if (!ended.error.empty())
      machine.program->resume(Error{ended.error});
    else if (*machine.gathers)
      machine.program->resume(machine.store.results(ended.action));
    else
      machine.program->resume(std::vector<flow::Output>{});
    on_program(id);
  }
  void execute(MemberId, const PartDone&) {}
  void execute(MemberId id, const FlowEnded&) { machines_.at(id)->has_ended = true; }
  template <class Other>
  void execute(MemberId, const Other&) {
    ADD_FAILURE() << "an effect of another role, or of a job in one process";
  }

  FlowClusterOptions options_;
  FlowProgram program_;
  sim::Network network_;
  sim::Queue<Event> queue_;
  Random random_;
  std::map<MemberId, std::unique_ptr<Machine>> machines_;
  std::map<MemberId, Incarnation> incarnations_;
  std::map<MemberId, Time> died_at_;
  std::map<std::pair<MemberId, MemberId>, Time> blocked_at_;
  std::map<MemberId, double> factors_;
  std::map<PartName, int> computed_;
  std::vector<std::string> failures_;
  std::size_t peak_reserved_ = 0;
};

}  // namespace starling::core
