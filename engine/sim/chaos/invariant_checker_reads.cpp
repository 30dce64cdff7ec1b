/// The functions of InvariantChecker that check what workers read: that they read all updates that
/// the barrier promises, and each update once.
#include <algorithm>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"

namespace starling::sim {

using core::Step;

/// Checks that the values that the worker has read hold each update once, and that they hold the
/// worker's own updates, except perhaps the last own_steps_unread() of them, and the updates of
/// each worker in its view up to the step that the barrier promises (ExchangeOracle::step_read()).
void InvariantChecker::on_compute(NodeId id, const core::Compute& compute) {
  const NodeState& node_state = nodes_[id];
  if (const std::string why = samples_.on_compute(node_state.incarnation_index, id, compute);
      !why.empty())
    report_violation(why);
  if (!oracle_->has_whole_updates()) return;
  expect_whole_updates(id, compute);
  expect_own_updates(id, compute);
  const auto floor = barrier::promised_floor(scenario_.barrier, compute.step);
  if (compute.step == incarnations_[node_state.incarnation_index].first_step || !floor ||
      *floor == 0)
    return;
  if (barrier::always_passes(scenario_.barrier)) return;
  const auto expect_read = [&](std::size_t incarnation_index) {
    const IncarnationProgress& incarnation = incarnations_[incarnation_index];
    const bool is_barrier = core::exchange_type(scenario_.exchange).is_barrier;
    const Step read = oracle_->step_read(*floor);
    const Step last_due =
        is_barrier && !incarnation.done ? read : std::min(read, incarnation.reached);
    if (!incarnation.begun || incarnation.first_step >= last_due) return;
    const auto count_due = static_cast<double>(last_due - incarnation.first_step);
    for (const core::Value& value : compute.values)
      if (value.value.as<double>()[2 * incarnation_index] < count_due)
        report_violation(
            "worker " + std::to_string(id) + " reads range " + std::to_string(value.range) +
            " for step " + std::to_string(compute.step + 1) + " without step " +
            std::to_string(last_due) + " of worker " + incarnation_name(incarnation_index));
  };
  for (const std::size_t incarnation_index : node_state.view) expect_read(incarnation_index);
}

void InvariantChecker::expect_own_updates(NodeId id, const core::Compute& compute) {
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  const Step made = compute.step - incarnations_[incarnation_index].first_step;
  const auto own = static_cast<double>(made);
  const auto least = static_cast<double>(made - std::min(made, oracle_->own_steps_unread()));
  for (const core::Value& value : compute.values)
    if (const double read = value.value.as<double>()[2 * incarnation_index];
        read < least || read > own)
      report_violation("worker " + std::to_string(id) + " reads range " +
                       std::to_string(value.range) + " for step " +
                       std::to_string(compute.step + 1) + " with " +
                       print_number(value.value.as<double>()[2 * incarnation_index]) +
                       " of its own " + print_number(own) + " updates");
}

void InvariantChecker::expect_whole_updates(NodeId id, const core::Compute& compute) {
  for (const core::Value& value : compute.values) {
    const auto elements = value.value.as<double>();
    for (std::size_t i = 0; i < incarnations_.size(); ++i)
      if (elements[2 * i + 1] !=
          sum_of_steps(incarnations_[i].first_step, static_cast<Step>(elements[2 * i])))
        report_violation("worker " + std::to_string(id) + " reads range " +
                         std::to_string(value.range) + " for step " +
                         std::to_string(compute.step + 1) + " without each step of worker " +
                         incarnation_name(i) + " once");
  }
}

}  // namespace starling::sim
