#include "starling/engine/sim/protocol/protocol.hpp"

#include <algorithm>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::sim {
namespace {

using core::MemberContext;
using core::MemberCore;

/// The keys of the random streams that a run derives from its seed. The key of a member's own
/// stream is its id, which is below these keys.
enum class Stream : std::uint64_t { network = 1ULL << 32U, suspicions, steps };

Random stream(std::uint64_t seed, Stream key, std::uint64_t worker = 0) {
  return Random::stream(seed, static_cast<std::uint64_t>(key), worker);
}

}  // namespace

Result<void> check(const ProtocolOptions& options) {
  const auto recheck = options.recheck.value_or(core::default_recheck(options.mode));
  if (auto valid = core::check_exchange(options.exchange, options.mode, options.barrier, recheck,
                                        options.workers);
      !valid)
    return valid;
  if (options.cache)
    if (auto valid = core::check_cache(options.exchange, options.mode, options.barrier); !valid)
      return valid;
  if (auto valid = check(options.link); !valid) return std::move(valid).error().within("link");
  if (owner_count(options) == 0) return Error{"shards=0: a job needs at least 1 server shard"};
  if (options.replication_factor == 0) return Error{"copies=0: a range needs at least 1 owner"};
  if (options.steps == barrier::unlimited && options.horizon == Time::max())
    return Error{"a job needs a number of steps or a horizon: else it never ends"};
  if (options.horizon <= Time{0})
    return Error{"horizon=" + print_duration(options.horizon) + ": valid: more than 0s"};
  if (options.point_every && *options.point_every <= Time{0})
    return Error{"points every " + print_duration(*options.point_every) + ": valid: more than 0s"};
  if (options.link.loss > 0 && !has_channels(options))
    return Error{"loss=" + print_number(options.link.loss) +
                 ": a job does not survive lost messages without channels"};
  if (!options.slowness.empty() && options.slowness.size() != options.workers)
    return Error{std::to_string(options.slowness.size()) + " slowness factors for " +
                 std::to_string(options.workers) + " workers; valid: one for each, or none"};
  return check_absences(options.absences, options.workers);
}

Protocol::Protocol(ProtocolOptions options, Job job)
    : options_(std::move(options)),
      job_(std::move(job)),
      absences_(options_.absences, options_.seed),
      network_(options_.link, stream(options_.seed, Stream::network)()),
      suspicion_random_(stream(options_.seed, Stream::suspicions)) {
  const auto valid = check(options_);
  STARLING_CHECK(valid.ok());
  if (job_.has_early_parts)
    buckets_ =
        core::exchange_buckets(options_.exchange, *job_.layout, job_.applier->element_bytes());
  make_members();
}

core::ConfigurationPtr Protocol::first_configuration() const {
  const std::size_t owners = owner_count(options_);
  const bool is_placed = core::exchange_type(options_.exchange).places_ranges;
  const std::size_t ranges = is_placed ? job_.layout->ranges.size() : 0;
  auto first = core::one_process_configuration(options_.mode, options_.workers, owners,
                                               core::assign_ranges(ranges, owners));
  if (has_channels(options_)) {
    for (core::Member& member : first.members) member.incarnation = 1;
    first = core::first_configuration(std::move(first.members), ranges, options_.replication_factor,
                                      core::keeps_steps_centrally(options_.mode));
  }
  return std::make_shared<const core::Configuration>(std::move(first));
}

void Protocol::make_members() {
  core::MemberOptions member;
  member.first_configuration = first_configuration();
  core::TrainingOptions training;
  training.mode = options_.mode;
  training.worker.last_step = options_.steps;
  training.worker.asks_for_plan = static_cast<bool>(job_.plan);
  training.worker.barrier = options_.barrier;
  training.worker.recheck = options_.recheck.value_or(core::default_recheck(options_.mode));
  training.exchange.name = options_.exchange;
  training.exchange.cache = options_.cache;
  training.exchange.has_early_parts = job_.has_early_parts;
  training.exchange.rounds_to_bf16 = options_.rounds_to_bf16;
  training.exchange.layout = job_.layout;
  training.exchange.applier = job_.applier;
  training.exchange.workers = options_.workers;
  training.exchange.initial_states =
      std::make_shared<const std::vector<core::RangeState>>(job_.initial_states);
  training.deal = job_.deal;
  training.first_worker_configuration = std::make_shared<const core::WorkerConfiguration>(
      core::worker_configuration(*member.first_configuration, nullptr));
  member.role = std::make_shared<const core::TrainingOptions>(std::move(training));
  member.members_max = static_cast<MemberId>(member.first_configuration->members.size());
  member.council.replication_factor = options_.replication_factor;
  member.channel = options_.channel;
  for (const core::Member& self : member.first_configuration->members) {
    member.self = self;
    nodes_.push_back({.core = std::make_unique<MemberCore>(member),
                      .random = Random::stream(options_.seed, self.id),
                      .step_random = stream(options_.seed, Stream::steps, self.id),
                      .is_running = self.works});
  }
  workers_at_[0] = options_.workers;
  if (has_channels(options_)) return;
  for (MemberId id = 0; id < nodes_.size(); ++id) run_member(id, &MemberCore::prepare);
}

// --- events -------------------------------------------------------------------------------------

bool Protocol::run() {
  for (MemberId id = 0; id < nodes_.size(); ++id) run_member(id, &MemberCore::start);
  schedule_points();
  for (std::uint64_t events = 0; !queue_.empty() && !is_over_; ++events) {
    if (queue_.next_at() > options_.horizon) {
      queue_.advance(options_.horizon);
      break;
    }
    if (events >= options_.events_max) {
      error_ = "the job does not finish within " + std::to_string(events) + " events";
      break;
    }
    if (handle_next_event() && on_event) on_event();
    if (workers_at_.empty() && is_model_whole()) break;
  }
  if (error_.empty() && !is_over_ && queue_.empty() && !workers_at_.empty())
    error_ = "the job stalls at step " + std::to_string(workers_at_.begin()->first) +
             ": no event is left";
  if (!curve_.empty() && curve_.back().at < now()) {
    curve_.push_back(make_point());
    if (on_point) (void)on_point(curve_.back());
  }
  return error_.empty();
}

/// Returns true if every live worker is done, and no other member may still lack one of the
/// worker's updates that count (Training::is_done()). Requires: no worker runs.
bool Protocol::is_model_whole() const {
  for (MemberId id = 0; id < options_.workers; ++id)
    if (!nodes_[id].is_dead && !training(id).is_done()) return false;
  return true;
}

/// Returns the member that handles the event; nullopt for an Action, which no member handles.
std::optional<MemberId> Protocol::member_of(const Event& event) {
  return std::visit(
      []<class E>(const E& e) -> std::optional<MemberId> {
        if constexpr (std::is_same_v<E, Action>)
          return std::nullopt;
        else if constexpr (requires { e.to; })
          return e.to;
        else
          return e.at;
      },
      event);
}

/// Takes the next event from the queue and handles it. Returns false if it did not handle it: it
/// drops an event of a dead member, and postpones an event of a member that is frozen or away.
bool Protocol::handle_next_event() {
  Event event = queue_.pop();
  if (const auto id = member_of(event)) {
    if (nodes_[*id].is_dead) return false;
    const Time due = absences_.available_at(*id, std::max(now(), nodes_[*id].frozen_until));
    if (due > now()) {
      queue_.push(due, std::move(event));
      return false;
    }
  }
  std::visit([this](auto& e) { this->handle(e); }, event);
  return true;
}

void Protocol::handle(core::Envelope& envelope) {
  run_member(envelope.to, [&](MemberCore& member, const MemberContext& context) {
    member.on_packet(context, envelope);
  });
}

void Protocol::handle(core::LocalMessage& message) {
  run_member(message.to, [&](MemberCore& member, const MemberContext& context) {
    member.on_local_message(context, message);
  });
}

void Protocol::handle(TimerDue& due) {
  run_member(due.at, [&](MemberCore& member, const MemberContext& context) {
    member.on_timer(context, due.key);
  });
}

// --- effects ------------------------------------------------------------------------------------

void Protocol::execute(MemberId id, core::Dispatch& dispatch) {
  core::Envelope& envelope = dispatch.envelope;
  std::size_t bytes = header_bytes();
  if (const auto& payload = envelope.packet.payload) {
    bytes += size_of(**payload);
    auto& highest = sequence_sent_[{id, envelope.to, envelope.traffic_class}];
    // Counts a message once, not its retransmissions. A packet without a channel has the number 0.
    const std::uint64_t sequence = envelope.packet.sequence;
    if (sequence == 0 || sequence > highest) count_message(id, envelope.to, **payload);
    highest = std::max(highest, sequence);
  }
  for (const Time at : network_.send(now(), id, envelope.to, bytes)) queue_.push(at, envelope);
}

void Protocol::execute(MemberId id, core::LocalMessage& message) {
  count_message(id, message.to, *message.message);
  const std::size_t bytes = header_bytes() + size_of(*message.message);
  for (const Time at : network_.send(now(), id, message.to, bytes)) queue_.push(at, message);
}

std::size_t Protocol::size_of(const core::PeerMessage& message) const {
  return bytes_of(message, job_.applier->element_bytes());
}

void Protocol::count_message(MemberId from, MemberId to, const core::PeerMessage& message) {
  if (on_send) on_send(from, to, message);
  traffic_[message.index()] += {1, header_bytes() + size_of(message)};
}

void Protocol::execute(MemberId id, const core::MemberTimer& timer) {
  queue_.push(timer.at, TimerDue{id, timer.key});
}

void Protocol::execute(MemberId id, const core::Excluded&) {
  end("member " + std::to_string(id) + " was declared dead");
}

void Protocol::end(std::string error) {
  error_ = std::move(error);
  is_over_ = true;
}

/// Records the progress of the member's worker after an event of the member: its step, whether it
/// runs or when it ended, the number of workers at each step, the largest lag, and the updates.
void Protocol::follow_step(MemberId id) {
  Node& node = nodes_[id];
  if (!node.is_running || training(id).worker() == nullptr) return;
  const core::Worker& worker = *training(id).worker();
  const bool runs = !worker.is_done() && !node.is_dead;
  if (worker.step() == node.step && runs) return;
  const auto old = workers_at_.find(node.step);
  if (--old->second == 0) workers_at_.erase(old);
  updates_ += worker.step() - node.step;
  node.step = worker.step();
  node.is_running = runs;
  // A worker runs until it has made its last step, so this step counts, too.
  const auto at = workers_at_.try_emplace(node.step).first;
  ++at->second;
  max_lag_ = std::max(max_lag_, workers_at_.rbegin()->first - workers_at_.begin()->first);
  if (runs) return;
  if (--at->second == 0) workers_at_.erase(at);
  node.ended_at = now();
}

// --- faults -------------------------------------------------------------------------------------

void Protocol::at(Time at, std::function<void()> action) { queue_.push(at, std::move(action)); }

void Protocol::freeze(MemberId id, Time at, Time duration) {
  this->at(at, [&node = nodes_.at(id), this, duration] {
    node.frozen_until = std::max(node.frozen_until, now() + duration);
  });
}

void Protocol::stop(Time at) {
  // The coordinator of a job in one process stops the workers itself.
  const bool only_coordinator =
      core::keeps_steps_centrally(options_.mode) && !has_channels(options_);
  for (MemberId id = 0; id < nodes_.size(); ++id)
    if (only_coordinator ? training(id).coordinator() != nullptr : id < options_.workers)
      queue_.push(at, MemberEvent{id, &MemberCore::stop});
}

void Protocol::die(MemberId id, Time at) {
  STARLING_CHECK(has_channels(options_));
  this->at(at, [this, id] {
    nodes_.at(id).is_dead = true;
    follow_step(id);
    const core::Incarnation incarnation = nodes_[id].core->self().incarnation;
    for (MemberId other = 0; other < nodes_.size(); ++other) {
      const Time delay = 10 * options_.link.latency.draw(suspicion_random_);
      queue_.push(now() + delay, MemberEvent{other, [id, incarnation](auto& member, const auto& c) {
                                               member.suspect(c, id, incarnation);
                                             }});
    }
  });
}

}  // namespace starling::sim
