/// How a Protocol computes its model, the points of its curve, and its result.
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::sim {

/// The number of points of the curve, unless `point_every` is set.
constexpr int points_per_horizon = 200;

std::vector<core::RangeState> Protocol::model() {
  std::vector<core::RangeState> states(job_.layout->ranges.size());
  std::vector<core::Epoch> epoch_of(states.size());
  for (Node& node : nodes_) {
    const core::ConfigurationPtr& configuration = node.core->configuration();
    if (node.is_dead || !configuration) continue;
    core::MemberEffects effects;
    node.core->on_input({now(), node.random, effects}, core::Snapshot{1});
    for (core::MemberEffect& effect : effects) {
      auto& observed = std::get<core::ObservedState>(effect).state;
      const core::RangeId range = observed->range;
      const bool answers = std::visit([&](const auto& e) { return e.answers_for(range); },
                                      std::as_const(*node.core).role<core::Training>().exchange());
      if (!answers || configuration->epoch < epoch_of[range]) continue;
      epoch_of[range] = configuration->epoch;
      states[range] = std::move(*observed);
    }
  }
  return states;
}

const core::Coordinator* Protocol::coordinator() const {
  const core::Coordinator* last = nullptr;
  for (const Node& node : nodes_)
    if (const auto* one = node.core->role<core::Training>().coordinator();
        one != nullptr && (last == nullptr || !node.is_dead))
      last = one;
  return last;
}

ProtocolPoint Protocol::make_point() {
  ProtocolPoint point;
  point.at = now();
  point.updates = updates_;
  std::vector<Step> steps;
  std::size_t waiting = 0;
  for (MemberId id = 0; id < options_.workers; ++id) {
    if (nodes_[id].is_dead) continue;
    steps.push_back(worker(id).step());
    waiting += worker(id).is_waiting() ? 1 : 0;
  }
  if (!steps.empty()) {
    std::ranges::sort(steps);
    point.min = steps.front();
    point.median = steps[steps.size() / 2];
    point.max = steps.back();
    point.waiting = static_cast<double>(waiting) / static_cast<double>(steps.size());
  }
  if (job_.evaluate) point.metrics = job_.evaluate(model());
  return point;
}

void Protocol::schedule_points() {
  std::optional<Time> every = options_.point_every;
  if (!every && options_.horizon != Time::max())
    every = std::max(Time{1}, options_.horizon / points_per_horizon);
  if (every) at(now(), [this, every = *every] { add_point(every); });
}

void Protocol::add_point(Time every) {
  curve_.push_back(make_point());
  if (on_point && !on_point(curve_.back())) is_over_ = true;
  if (!queue_.empty()) at(now() + every, [this, every] { add_point(every); });
}

ProtocolResult Protocol::result() {
  ProtocolResult result;
  for (MemberId id = 0; id < options_.workers; ++id)
    result.elapsed = std::max(result.elapsed, std::min(now(), nodes_[id].ended_at));
  Time wait_time{};
  Time lived{};
  for (MemberId id = 0; id < options_.workers; ++id) {
    const core::Worker& core = worker(id);
    const Time end = std::min(result.elapsed, nodes_[id].ended_at);
    const auto counts = core.draw_counts();
    result.steps.push_back(core.step());
    result.draws += counts.draws;
    result.passes += counts.passes;
    result.reads += training(id).read_counts();
    wait_time += core.wait_time(end);
    lived += end;
  }
  for (const Node& node : nodes_) {
    const core::Coordinator* coordinator = node.core->role<core::Training>().coordinator();
    if (coordinator == nullptr) continue;
    result.draws += coordinator->draws();
    result.passes += coordinator->passes();
  }
  if (lived > Time{0})
    result.waiting_share =
        static_cast<double>(wait_time.count()) / static_cast<double>(lived.count());
  result.curve = curve_;
  result.updates = updates_;
  result.max_lag = max_lag_;
  if (!visited_at_.empty())
    result.longest_gap = std::max(longest_gap_, result.elapsed - std::ranges::min(visited_at_));
  result.traffic = traffic_;
  result.packets = network_.counts();
  result.model = model();
  result.error = error_;
  return result;
}

}  // namespace starling::sim
