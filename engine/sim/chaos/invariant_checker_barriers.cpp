/// The functions of InvariantChecker that check barriers: that workers pass only if the steps of
/// others permit it.
#include <algorithm>
#include <utility>

#include "starling/barrier/barrier.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"

namespace starling::sim {

using core::Step;

namespace {

/// Returns true if a gate may have made the pace from the answer. The answer says how long ago its
/// sender has pushed; the pace has a time by the clock of the gate, which is not checked.
bool is_pace_of(const core::StepAnswer& answer, const barrier::Pace& pace) {
  const core::PaceReport report = answer.pace.value_or(core::PaceReport{});
  const auto ns = [](core::Time time) { return static_cast<std::uint64_t>(time.count()); };
  return answer.step == pace.step && report.interval_ns == ns(pace.interval) &&
         report.duration_ns == ns(pace.duration) && report.waits == pace.waits;
}

}  // namespace

bool InvariantChecker::has_reached(std::size_t incarnation_index, Step floor) const {
  const IncarnationProgress& incarnation = incarnations_[incarnation_index];
  return incarnation.done || incarnation.reached >= floor;
}

/// Called when the worker of node `id` goes on from `step`. Checks that the barrier permits this.
void InvariantChecker::on_plan(NodeId id, Step step) {
  check_begin(id, step);
  nodes_[id].held_since.reset();
}

void InvariantChecker::check_begin(NodeId id, Step step) {
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  if (step == incarnations_[incarnation_index].first_step)
    return;  // no barrier stands before the first step
  if (!scenario_.has_coordinator()) return check_pass(id, step);
  NodeState& node_state = nodes_[id];
  // A coordinator's permission to its own worker is not dispatched as a message.
  const auto& training = node_state.core->role<core::Training>();
  if (training.coordinator() != nullptr)
    record_permission(id, id, incarnation_index, {step, training.worker()->run_end()},
                      *node_state.configuration);
  const auto permission =
      std::ranges::find_if(permissions_[incarnation_index], [&](const Permission& one) {
        return one.step <= step && step < one.until &&
               is_coordinator(incarnations_[one.coordinator_index].member, node_state);
      });
  if (permission == permissions_[incarnation_index].end())
    return report_violation("worker " + incarnation_name(incarnation_index) +
                            " goes on without the coordinator's permission");
  if (!permission->objection.empty())
    report_violation("the coordinator lets worker " + incarnation_name(incarnation_index) +
                     " go on from step " + std::to_string(step) + permission->objection);
  node_state.view = permission->view;
  passes_ += node_state.view.empty() ? 0 : 1;
}

bool InvariantChecker::is_coordinator(const core::Member& member,
                                      const NodeState& node_state) const {
  core::Epoch epoch = epoch_of_pass(node_state);
  for (; epoch <= node_state.configuration->epoch; ++epoch) {
    const core::Configuration* configuration = configuration_of(epoch);
    if (configuration != nullptr && configuration->coordinator == member.id &&
        configuration->contains(member.id, member.incarnation))
      return true;
  }
  return false;
}

core::Epoch InvariantChecker::epoch_of_pass(const NodeState& node_state) {
  if (node_state.held_since) return *node_state.held_since;
  return (node_state.previous_configuration ? node_state.previous_configuration
                                            : node_state.configuration)
      ->epoch;
}

void InvariantChecker::check_pass(NodeId id, Step step) {
  if (core::exchange_type(scenario_.exchange).is_barrier) return see_all(id);
  if (barrier::needs_paces(scenario_.barrier)) return check_pass_by_paces(id, step);
  NodeState& node_state = nodes_[id];
  node_state.view.clear();
  const Draw& draw = node_state.draw;
  const bool has_drawn = draw.number > 0 && !draw.used && draw.step == step;
  const bool is_tuned = barrier::is_tuned(scenario_.barrier);
  // The tuner of a worker chooses a sample size of 0 for some steps.
  if (is_tuned && !has_drawn) return;
  const auto floor = is_tuned ? draw.tuned_floor : barrier::promised_floor(scenario_.barrier, step);
  if (barrier::always_passes(scenario_.barrier) || floor == Step{0}) return;
  const std::string why = why_not_pass(node_state, step, floor);
  // A worker that was the only worker needed no draw.
  if (!why.empty() && !was_alone(node_state))
    report_violation("worker " + std::to_string(id) + " has passed the barrier at step " +
                     std::to_string(step) + why);
  if (!why.empty()) return;
  ++passes_;
  node_state.draw.used = true;
  node_state.view = view_of(node_state.draw);
}

/// Checks that a worker that has joined begins at a step that it was told: by the coordinator, or
/// by one of the workers that it has asked. If the exchange is the barrier, it sets the step.
void InvariantChecker::expect_entry(NodeId id, const core::Worker& worker) {
  if (core::exchange_type(scenario_.exchange).is_barrier) return;
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  const Step first = incarnations_[incarnation_index].first_step;
  bool was_told = true;
  if (scenario_.has_coordinator()) {
    // The coordinator's message to its own worker is not dispatched. Under bsp, the worker counts
    // as begun once it has made the step with which it enters.
    const Step told = first - (worker.options().bsp ? 1 : 0);
    was_told = nodes_[id].core->role<core::Training>().coordinator() != nullptr ||
               std::ranges::any_of(permissions_[incarnation_index],
                                   [&](const Permission& one) { return one.step == told; });
  } else if (worker.gate() != nullptr && !worker.gate()->begins_first()) {
    was_told = std::ranges::any_of(nodes_[id].draw.asked, [&](const AskedWorker& asked) {
      return asked.answer && asked.answer->step == first;
    });
  }
  if (!was_told)
    report_violation("worker " + incarnation_name(incarnation_index) + " begins at step " +
                     std::to_string(first) + ", which nobody has told it");
}

/// The exchange is the barrier: the worker is to read the updates of all others.
void InvariantChecker::see_all(NodeId id) {
  NodeState& node_state = nodes_[id];
  node_state.view.clear();
  for (const core::Member& member : node_state.configuration->members) {
    const auto incarnation_index = incarnation_index_of(member.id, member.incarnation);
    if (member.works && member.id != id && incarnation_index &&
        latest()->contains(member.id, member.incarnation))
      node_state.view.push_back(*incarnation_index);
  }
  ++passes_;
}

/// Returns the indices of the incarnations of the workers that have begun, as they have answered in
/// the draw.
std::vector<std::size_t> InvariantChecker::view_of(const Draw& draw) {
  std::vector<std::size_t> view;
  for (const AskedWorker& asked : draw.asked)
    if (asked.answer && asked.answer->step != core::not_begun)
      view.push_back(asked.incarnation_index);
  return view;
}

void InvariantChecker::check_pass_by_paces(NodeId id, Step step) {
  NodeState& node_state = nodes_[id];
  Draw& draw = node_state.draw;
  const bool runs = draw.used && draw.step < step && step < draw.run_end;
  if (!runs) node_state.view.clear();
  if (barrier::always_passes(scenario_.barrier)) return;
  if (barrier::floor(scenario_.barrier, step) == Step{0}) return;
  std::string why = runs ? "" : why_not_pass_by_paces(node_state, step);
  const Step promised = barrier::promised_floor(scenario_.barrier, step).value_or(0);
  if (why.empty() && promised > 0) why = why_below(draw, promised);
  if (!why.empty() && !was_alone(node_state))
    report_violation("worker " + std::to_string(id) + " has passed the barrier at step " +
                     std::to_string(step) + why);
  if (!why.empty()) return;
  ++passes_;
  if (runs) return;
  draw.used = true;
  draw.run_end = gate_of(node_state).run_end();
  node_state.view = view_of(draw);
}

std::string InvariantChecker::why_not_pass_by_paces(const NodeState& node_state, Step step) const {
  const Draw& draw = node_state.draw;
  if (draw.number == 0 || draw.used || draw.step != step) return " without asking anyone";
  if (const std::string why = why_not_sample(node_state); !why.empty()) return why;
  const core::SampleGate& gate = gate_of(node_state);
  const auto paces = gate.seen_paces();
  const auto from = gate.seen_from();
  if (gate.own_pace().step != step || paces.size() != draw.expected || from.size() > paces.size())
    return " by other paces than those of its draw";
  for (std::size_t i = 0; i < paces.size(); ++i) {
    // Workers that did not answer in time count as behind.
    if (i >= from.size() && paces[i].step == 0) continue;
    const auto is_answer = [&](const AskedWorker& asked) {
      return i < from.size() && incarnations_[asked.incarnation_index].member.id == from[i] &&
             asked.answer && is_pace_of(*asked.answer, paces[i]);
    };
    if (std::ranges::none_of(draw.asked, is_answer))
      return " by a pace that no worker of its draw has answered";
  }
  const Step until = barrier::run_to(scenario_.barrier, gate.own_pace(), paces);
  if (until <= step) return " against its rule";
  if (until != gate.run_end())
    return " to run to step " + std::to_string(gate.run_end()) + ", not " + std::to_string(until);
  return {};
}

bool InvariantChecker::was_alone(const NodeState& node_state) const {
  core::Epoch epoch = epoch_of_pass(node_state);
  for (; epoch <= node_state.configuration->epoch; ++epoch) {
    const core::Configuration* configuration = configuration_of(epoch);
    if (configuration == nullptr || other_worker_count(*configuration) == 0) return true;
  }
  return false;
}

std::string InvariantChecker::why_not_pass(const NodeState& node_state, Step step,
                                           std::optional<Step> floor) const {
  const Draw& draw = node_state.draw;
  if (draw.number == 0 || draw.used) return " without asking anyone";
  if (const std::string why = why_not_sample(node_state); !why.empty()) return why;
  if (floor) return why_below(draw, *floor);
  // Workers that did not answer in time count as being at step 0.
  std::vector<Step> seen;
  for (const AskedWorker& asked : draw.asked) seen.push_back(asked.answer ? asked.answer->step : 0);
  seen.resize(gate_of(node_state).seen_steps().size());
  return barrier::admits(scenario_.barrier, step, seen) ? "" : " against its rule";
}

/// A question may still wait in the channel to a worker that acknowledges nothing, so that the
/// checker has not seen it. The gate counts that worker as one that has not answered in time.
std::string InvariantChecker::why_not_sample(const NodeState& node_state) const {
  const Draw& draw = node_state.draw;
  const std::size_t drawn = gate_of(node_state).seen_steps().size();
  if (is_sample_size(drawn, draw.expected) && draw.asked.size() <= drawn) return {};
  return " after drawing " + std::to_string(drawn) + " others and asking " +
         std::to_string(draw.asked.size()) + ", not " + std::to_string(draw.expected);
}

const core::SampleGate& InvariantChecker::gate_of(const NodeState& node_state) {
  return *node_state.core->role<core::Training>().worker()->gate();
}

std::string InvariantChecker::why_below(const Draw& draw, Step floor) const {
  for (const AskedWorker& asked : draw.asked) {
    if (!asked.answer)
      return " though worker " + incarnation_name(asked.incarnation_index) + " has not answered";
    if (asked.answer->step < floor)  // check_message() of the StepAnswer has checked the answer
      return " though worker " + incarnation_name(asked.incarnation_index) + " was at " +
             std::to_string(asked.answer->step);
  }
  return {};
}

/// Returns true if a worker may have drawn `drawn` others when the barrier sees `seen` workers:
/// just as many, or no more than that if the barrier is tuned.
bool InvariantChecker::is_sample_size(std::size_t drawn, std::size_t seen) const {
  return barrier::is_tuned(scenario_.barrier) ? drawn <= seen : drawn == seen;
}

/// Returns how many other workers a worker has: all workers of the configuration less one.
std::size_t InvariantChecker::other_worker_count(const core::Configuration& configuration) {
  const auto workers = std::ranges::count_if(configuration.members, &core::Member::works);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(workers, 1) - 1);
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::Arrived& arrived) {
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  // The checker does not follow the last step of a member that was excluded in the same event.
  if (nodes_[id].core->state() != MemberCore::State::member) return;
  if (arrived.step > incarnations_[incarnation_index].reached)
    report_violation("worker " + incarnation_name(incarnation_index) +
                     " says that it has arrived at " + std::to_string(arrived.step) +
                     ", and is at " + std::to_string(incarnations_[incarnation_index].reached));
}

/// Checks the report of a worker to a new coordinator: the worker must not report a step beyond its
/// own, or a permission to go on that no coordinator gave it.
void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::WorkerStatus& status) {
  using enum core::WorkerStatus::Phase;
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  const IncarnationProgress& incarnation = incarnations_[incarnation_index];
  const auto report_false_status = [&](const std::string& what) {
    report_violation("worker " + incarnation_name(incarnation_index) +
                     " says to the coordinator that it " + what);
  };
  if (status.phase == entering && incarnation.had_begun) report_false_status("has not begun");
  if (status.phase == idle && incarnation.member.works) report_false_status("does not work");
  if ((status.phase == waiting || status.phase == ended) && status.step > incarnation.reached)
    report_false_status("is at " + std::to_string(status.step));
  if (status.phase == going && status.step != incarnation.first_step &&
      std::ranges::none_of(permissions_[incarnation_index], [&](const Permission& one) {
        return one.step <= status.step && status.step < one.until;
      }))
    report_false_status("was let go from " + std::to_string(status.step));
}

/// Checks that the sender is the coordinator, and records its permission.
void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::Proceed& proceed) {
  const auto incarnation_index = incarnation_index_of(envelope.to, envelope.packet.to.value_or(0));
  const core::Configuration* configuration = configuration_of(envelope.epoch);
  if (!incarnation_index || configuration == nullptr) return;
  if (configuration->coordinator != id)
    report_violation(
        "node " + std::to_string(id) + " lets worker " + incarnation_name(*incarnation_index) +
        " go on and is not the coordinator in epoch " + std::to_string(envelope.epoch));
  if (nodes_[id].core == nullptr ||
      nodes_[id].core->role<core::Training>().coordinator() == nullptr)
    return;
  record_permission(id, envelope.to, *incarnation_index, proceed, *configuration);
}

void InvariantChecker::record_permission(NodeId id, NodeId to, std::size_t incarnation_index,
                                         const core::Proceed& proceed,
                                         const core::Configuration& configuration) {
  const Step step = proceed.step;
  const Step until = std::max(proceed.until, step + 1);
  const std::size_t coordinator_index = nodes_[id].incarnation_index;
  auto permission = std::ranges::find(permissions_[incarnation_index], coordinator_index,
                                      &Permission::coordinator_index);
  if (permission == permissions_[incarnation_index].end())
    permission = permissions_[incarnation_index].insert(permission,
                                                        Permission{coordinator_index, step, until});
  else if (permission->step >= step || permission->until > step)
    return;  // the coordinator repeats a permission, or the worker runs
  *permission = {coordinator_index, step, until};
  // The promise holds for the last step of a run, and so for all its steps.
  const auto floor = barrier::promised_floor(scenario_.barrier, until - 1);
  if (!incarnations_[incarnation_index].begun)
    return;  // the message tells a new worker at which step to begin
  if (barrier::always_passes(scenario_.barrier) || floor == Step{0}) return;
  if (!floor && barrier::needs_paces(scenario_.barrier)) return;  // only the coordinator knows them
  permission->view = view_of_coordinator(id, to, configuration);
  if (permission->view.empty() && was_alone(nodes_[id])) return;
  permission->objection = why_not_proceed(configuration, permission->view, step, floor);
  // The coordinator may have drawn in the event in which it then adopted the configuration.
  for (core::Epoch epoch = configuration.epoch;
       !permission->objection.empty() && epoch > epoch_of_pass(nodes_[id]); --epoch) {
    const core::Configuration* former = configuration_of(epoch - 1);
    if (former == nullptr) continue;
    auto view = view_of_coordinator(id, to, *former);
    if (!why_not_proceed(*former, view, step, floor).empty()) continue;
    permission->view = std::move(view);
    permission->objection.clear();
  }
}

std::vector<std::size_t> InvariantChecker::view_of_coordinator(
    NodeId id, NodeId to, const core::Configuration& configuration) const {
  std::vector<std::size_t> view;
  const auto add = [&](core::MemberId other) {
    const core::Member* member = configuration.find(other);
    if (member == nullptr || !member->works || other == to) return;
    const auto seen = incarnation_index_of(other, member->incarnation);
    if (seen && std::ranges::find(view, *seen) == view.end()) view.push_back(*seen);
  };
  if (barrier::is_sampled(scenario_.barrier))
    for (const core::MemberId other :
         nodes_[id].core->role<core::Training>().coordinator()->drawn(to))
      add(other);
  else
    for (const core::Member& member : configuration.members) add(member.id);
  return view;
}

std::string InvariantChecker::why_not_proceed(const core::Configuration& configuration,
                                              const std::vector<std::size_t>& view, Step step,
                                              std::optional<Step> floor) const {
  const std::size_t expected =
      barrier::seen_workers(scenario_.barrier, other_worker_count(configuration));
  if (barrier::is_sampled(scenario_.barrier) && !is_sample_size(view.size(), expected))
    return " after drawing " + std::to_string(view.size()) + " others, not " +
           std::to_string(expected);
  // The coordinator sees no step that is beyond the true one.
  const auto is_counted = [&](std::size_t incarnation_index) {
    return incarnations_[incarnation_index].begun && !incarnations_[incarnation_index].done;
  };
  if (!floor) {
    std::vector<Step> seen;
    for (const std::size_t incarnation_index : view)
      seen.push_back(is_counted(incarnation_index) ? incarnations_[incarnation_index].reached
                                                   : barrier::finished);
    return barrier::admits(scenario_.barrier, step, seen) ? "" : " against its rule";
  }
  for (const std::size_t incarnation_index : view)
    if (incarnations_[incarnation_index].begun && !has_reached(incarnation_index, *floor))
      return " though worker " + incarnation_name(incarnation_index) + " is at " +
             std::to_string(incarnations_[incarnation_index].reached);
  return {};
}

}  // namespace starling::sim
