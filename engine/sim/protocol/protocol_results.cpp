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
  core::Effects effects;
  const core::Context context{now(), owner_random_, effects};
  for (auto& shard : shards_) shard.on(context, core::Snapshot{1});
  for (auto& peer : peers_) peer.on(context, core::Snapshot{1});
  for (core::Effect& effect : effects) {
    auto& state = std::get<core::RangeState>(std::get<core::Send>(effect).message);
    states[state.range] = std::move(state);
  }
  return states;
}

ProtocolPoint Protocol::make_point() {
  ProtocolPoint point;
  point.at = now();
  point.updates = updates_;
  std::vector<Step> steps;
  std::size_t waiting = 0;
  for (MemberId id = 0; id < options_.workers; ++id) {
    if (dead_[id]) continue;
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
  result.elapsed = std::min(now(), std::ranges::max(ended_at_));
  Time waited{};
  Time lived{};
  for (MemberId id = 0; id < options_.workers; ++id) {
    const core::Worker& core = worker(id);
    const Time end = std::min(result.elapsed, ended_at_[id]);
    const auto counts = core.draw_counts();
    result.steps.push_back(core.step());
    result.draws += counts.draws;
    result.passes += counts.passes;
    waited += core.waited(end);
    lived += end;
  }
  if (coordinator_) {
    result.draws = coordinator_->draws();
    result.passes = coordinator_->passes();
  }
  if (lived > Time{0})
    result.waiting_share = static_cast<double>(waited.count()) / static_cast<double>(lived.count());
  result.curve = curve_;
  result.updates = updates_;
  result.max_lag = max_lag_;
  result.traffic = traffic_;
  result.packets = network_.counts();
  result.model = model();
  result.error = error_;
  return result;
}

}  // namespace starling::sim
