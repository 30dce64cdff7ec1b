#include "starling/engine/sim/chaos/chaos_run.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "starling/base/check.hpp"

namespace starling::sim::detail {
namespace {

using namespace std::chrono_literals;

/// The virtual time after the last fault within which every member must finish: `finish_within`, or
/// `give_up_within` in scenarios whose faults exceed the fault budget, in which the job may also
/// end with an error.
constexpr Time finish_within = 600s;
constexpr Time give_up_within = 1200s;
/// The most events within a second of virtual time.
constexpr std::uint64_t events_max = 3'000'000;

}  // namespace

void ChaosRun::begin_incarnation(NodeId id, bool is_initial) {
  Machine& machine = machines_[id];
  const core::Member self = job_.member(id, machine.incarnation + 1);
  std::vector<core::MemberId> seeds;
  for (NodeId other = 0; other < nodes_max; ++other)
    if (other != id && machines_[other].running) seeds.push_back(other);
  auto core = std::make_unique<MemberCore>(job_.options(self, is_initial, std::move(seeds)));
  const auto incarnation_index = checker_.on_incarnation_started(self, core.get());
  if (!incarnation_index) return;
  machine.core = std::move(core);
  machine.incarnation = self.incarnation;
  machine.incarnation_index = *incarnation_index;
  machine.random = Random::stream(scenario_.seed, 2, *incarnation_index);
  machine.running = true;
  machine.dies_after_effects.reset();
  std::ranges::fill(machine.last_alive, std::pair{core::Incarnation{0}, Time{}});
  run_event(id, [](MemberCore& n, const core::MemberContext& c) { n.start(c); });
}

void ChaosRun::end_incarnation(NodeId id) {
  Machine& machine = machines_[id];
  machine.running = machine.frozen = false;
  machine.frozen_until = {};
  machine.deferred.clear();
  machine.dies_after_effects.reset();
  checker_.on_incarnation_ended(id);
}

// --- events and effects -------------------------------------------------------------------------

namespace {

/// Thrown when a STARLING_CHECK in a member's core fails.
struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void report_broken(const char* condition, const char* file, int line) {
  throw BrokenInvariant{std::string{"broken invariant '"} + condition + "' at " + file + ":" +
                        std::to_string(line)};
}

}  // namespace

ChaosReport ChaosRun::run() {
  const CheckScope checks{report_broken};
  is_active_.resize(scenario_.faults.size());
  for (NodeId id = 0; id < scenario_.initial_nodes(); ++id)
    queue_.push(Time{}, Event{.kind = Event::Kind::start, .node = id});
  for (std::uint32_t i = 0; i < scenario_.faults.size(); ++i)
    queue_.push(scenario_.faults[i].at, Event{.kind = Event::Kind::fault, .key = i});
  pending_faults_ = static_cast<std::uint32_t>(scenario_.faults.size());
  queue_.push(detection_interval, Event{.kind = Event::Kind::detect_failures});
  bool is_finished_now = false;
  Time second_ends_at{};
  std::uint64_t events_before = 0;
  while (report_.violation.empty() && !report_.gave_up && !is_finished_now) {
    Event event = queue_.pop();
    ++report_.events;
    try {
      handle(event);
    } catch (const std::exception& error) {
      report_.violation = error.what();
      break;
    }
    if (report_.violation.empty()) report_.violation = checker_.violation();
    const auto is_in_job = [](const Machine& machine) {
      return machine.running && machine.core->state() != MemberCore::State::excluded;
    };
    if (scenario_.exceeds_fault_budget && !std::ranges::any_of(machines_, is_in_job) &&
        pending_rejoins_ == 0)
      report_.gave_up = event.kind == Event::Kind::detect_failures && pending_faults_ == 0;
    if (event.kind == Event::Kind::detect_failures && pending_faults_ == 0) {
      is_finished_now = is_finished();
      const Time limit =
          healed_at_ + (scenario_.exceeds_fault_budget ? give_up_within : finish_within);
      if (!is_finished_now && now() > limit && report_.violation.empty())
        report_.violation = "stuck: " + why_not_finished();
    }
    if (now() >= second_ends_at) {
      second_ends_at = now() + 1s;
      events_before = report_.events;
    }
    if (report_.events - events_before > events_max)
      report_.violation = "too many events: " + why_not_finished();
  }
  if (report_.violation.empty() && !report_.gave_up) {
    checker_.expect_equal_replicas();
    checker_.expect_samples_taken_once();
    if (!job_.deal().epochs) checker_.expect_all_steps();
    report_.violation = checker_.violation();
  }
  report_.end = now();
  report_.packets = network_.counts().sent;
  report_.steps = checker_.steps();
  report_.passes = checker_.passes();
  report_.incarnations = checker_.incarnations();
  report_.epochs = checker_.latest() ? checker_.latest()->epoch : 0;
  return report_;
}

void ChaosRun::handle(Event& event) {
  switch (event.kind) {
    case Event::Kind::start:
      return begin_incarnation(event.node, true);
    case Event::Kind::rejoin:
      --pending_rejoins_;
      return begin_incarnation(event.node, false);
    case Event::Kind::fault:
      return begin_fault(event.key);
    case Event::Kind::fault_ends:
      return end_fault(event.key);
    case Event::Kind::detect_failures:
      queue_.push(now() + detection_interval, Event{.kind = Event::Kind::detect_failures});
      return detect_failures();
    default:
      break;
  }
  Machine& machine = machines_[event.node];
  if (!machine.running || (event.incarnation != 0 && event.incarnation != machine.incarnation))
    return;
  if (event.kind == Event::Kind::crash) {
    if (machine.dies_after_effects) end_incarnation(event.node);
    return;
  }
  if (machine.frozen)
    machine.deferred.push_back(std::move(event));
  else
    handle_at(machine, event);
}

void ChaosRun::handle_at(Machine& machine, Event& event) {
  const bool is_result = event.kind == Event::Kind::update || event.kind == Event::Kind::parts;
  if (is_result && event.key != machine.computation) return;
  run_event(event.node, [&](MemberCore& core, const core::MemberContext& context) {
    switch (event.kind) {
      case Event::Kind::packet:
        if (sabotage_ == nullptr || sabotage_->on_arrival(*this, event.envelope))
          core.on_packet(context, event.envelope);
        break;
      case Event::Kind::forged_message:
        deliver_forged(core, context, event.envelope, event.key == 1);
        break;
      case Event::Kind::timer:
        core.on_timer(context, event.key);
        break;
      case Event::Kind::plan:
        core.on_input(context, core::PlanResult{event.step, job_.plan()});
        break;
      case Event::Kind::parts:
        core.on_input(
            context,
            core::PartsResult{event.step, job_.parts(machine.incarnation_index, event.step,
                                                     checker_.samples().batch_size(
                                                         machine.incarnation_index, event.step),
                                                     event.bucket)});
        break;
      default:
        core.on_input(context,
                      core::ComputeResult{event.step,
                                          job_.update(machine.incarnation_index, event.step,
                                                      checker_.samples().batch_size(
                                                          machine.incarnation_index, event.step))});
    }
  });
}

/// Delivers a message of a Sabotage.
void ChaosRun::deliver_forged(MemberCore& core, const core::MemberContext& context,
                              core::Envelope& envelope, bool counts_as_sent) {
  const MemberCore* from = this->node(envelope.from);
  if (from == nullptr || !from->configuration()) return;
  envelope.epoch = from->configuration()->epoch;
  envelope.packet.from = from->self().incarnation;
  envelope.packet.to = core.self().incarnation;
  if (counts_as_sent) checker_.on_dispatch(envelope.from, envelope);
  core.on_message(context, envelope.from, from->self().incarnation, *envelope.packet.payload);
}

void ChaosRun::execute(NodeId id, core::MemberEffects& effects) {
  for (auto& effect : effects) std::visit([&](auto& e) { execute(id, e); }, effect);
}

void ChaosRun::execute(NodeId id, core::Dispatch& dispatch) {
  checker_.on_dispatch(id, dispatch.envelope);
  const NodeId to = dispatch.envelope.to;
  const Arrivals arrivals = network_.send(now(), id, to, 0);
  for (std::size_t i = 0; i < arrivals.count; ++i) {
    Event event{.kind = Event::Kind::packet, .node = to};
    event.envelope = i + 1 < arrivals.count ? dispatch.envelope : std::move(dispatch.envelope);
    queue_.push(arrivals.times[i], std::move(event));
  }
}

void ChaosRun::execute(NodeId id, const core::MemberTimer& timer) {
  queue_.push(timer.at, Event{.kind = Event::Kind::timer,
                              .node = id,
                              .incarnation = machines_[id].incarnation,
                              .key = timer.key});
}

void ChaosRun::execute(NodeId id, const core::Plan& plan) {
  checker_.on_plan(id, plan.step);
  queue_.push(now(), Event{.kind = Event::Kind::plan,
                           .node = id,
                           .incarnation = machines_[id].incarnation,
                           .step = plan.step});
}

void ChaosRun::execute(NodeId id, const core::Compute& compute) {
  checker_.on_compute(id, compute);
  schedule_update(
      id, compute.step,
      static_cast<double>(scenario_.compute.count()) * (id == 0 ? scenario_.straggling : 1));
}

/// Makes the worker hand in, soon, the gradient of a random part of its batch, unless it has just
/// handed in that of the whole batch.
void ChaosRun::execute(NodeId id, const core::HandInNow& hand_in) {
  Machine& machine = machines_[id];
  const std::size_t samples =
      checker_.samples().batch_size(machine.incarnation_index, hand_in.step);
  if (samples == 0) return;
  checker_.shorten_batch(id, hand_in.step, 1 + machine.random.below(samples));
  schedule_update(id, hand_in.step, static_cast<double>(scenario_.compute.count()) / 8);
}

/// Schedules the update of the step after `step`, in place of an update that is scheduled already,
/// and, at earlier times, some of its parts.
void ChaosRun::schedule_update(NodeId id, core::Step step, double mean_time) {
  Machine& machine = machines_[id];
  const Time duration{static_cast<Time::rep>(machine.random.exponential(mean_time))};
  queue_.push(now() + duration, Event{.kind = Event::Kind::update,
                                      .node = id,
                                      .incarnation = machine.incarnation,
                                      .key = ++machine.computation,
                                      .step = step});
  const std::size_t buckets = job_.buckets().size();
  for (std::uint32_t bucket = 0; bucket + 1 < buckets; ++bucket)
    if (machine.random.below(4) > 0)
      queue_.push(now() + duration * (bucket + 1) / buckets,
                  Event{.kind = Event::Kind::parts,
                        .node = id,
                        .incarnation = machine.incarnation,
                        .key = machine.computation,
                        .step = step,
                        .bucket = bucket});
}

void ChaosRun::execute(NodeId id, const core::Fail& fail) {
  // After a lasting fault, a member without which the job has gone on may give up before it
  // receives a message that says so. It then counts as excluded.
  const auto& latest = checker_.latest();
  const bool goes_on = std::ranges::any_of(machines_, [&](const Machine& machine) {
    return machine.running && machine.core->state() == MemberCore::State::member;
  });
  if (had_lasting_fault_ && goes_on && latest && !latest->contains(id, machines_[id].incarnation))
    return execute(id, core::Excluded{});
  if (scenario_.exceeds_fault_budget)
    report_.gave_up = true;
  else if (report_.violation.empty())
    report_.violation = "node " + std::to_string(id) + " has ended the job: " + fail.why;
}

void ChaosRun::execute(NodeId id, const core::Excluded&) {
  checker_.on_incarnation_ended(id);
  if (machines_[id].wants_to_leave) return;
  ++report_.excluded;
  ++pending_rejoins_;
  queue_.push(now() + Time{static_cast<Time::rep>(random_.below(20'000'000))},
              Event{.kind = Event::Kind::rejoin, .node = id});
}

}  // namespace starling::sim::detail
