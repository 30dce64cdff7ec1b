#include "starling/tools/cluster/follow/flow_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/run/stage_line.hpp"

namespace starling::program {
namespace {

/// Replaces what another process must not choose freely: characters that cannot be printed, and
/// times that are no numbers.
template <class Stage>
void clean(Stage& stage) {
  stage.description.operations = printable(stage.description.operations);
  stage.description.partitioner = printable(stage.description.partitioner);
  if (!std::isfinite(stage.seconds)) stage.seconds = 0;
}

/// Returns how many bits of `words` are set, but at most `parts`.
flow::Part count_parts(const std::vector<std::uint64_t>& words, flow::Part parts) {
  std::uint64_t count = 0;
  for (const std::uint64_t word : words) count += static_cast<std::uint64_t>(std::popcount(word));
  return static_cast<flow::Part>(std::min<std::uint64_t>(count, parts));
}

}  // namespace

void FlowStages::receive(wire::FlowReport report) {
  for (core::StageStatus& stage : report.current) clean(stage);
  for (core::StageTotals& stage : report.totals) clean(stage);
  const wire::NodeId node = report.node;
  reports_[node] = std::move(report);
}

bool FlowStages::has_begun() const {
  return std::ranges::any_of(reports_, [](const auto& known) { return known.second.actions > 0; });
}

std::optional<RunningStage> FlowStages::running(const std::set<wire::NodeId>& nodes) const {
  struct Merged {
    RunningStage stage;
    std::vector<std::uint64_t> parts_done = {};
  };
  std::uint32_t action = 0;
  for (const auto& [node, report] : reports_) action = std::max(action, report.actions);
  std::map<std::uint32_t, Merged> by_number;
  for (const auto& [node, report] : reports_) {
    if (report.actions != action) continue;
    for (const core::StageStatus& status : report.current) {
      if (status.number == 0) continue;
      Merged& merged = by_number[status.number];
      RunningStage& stage = merged.stage;
      stage.action = action;
      stage.number = status.number;
      stage.stages = std::max(stage.stages, report.stages);
      stage.description = status.description;
      stage.counts += status.counts;
      stage.seconds = std::max(stage.seconds, status.seconds);
      if (!nodes.contains(node)) continue;
      merged.parts_done.resize(std::max(merged.parts_done.size(), status.parts_done.size()));
      for (std::size_t word = 0; word < status.parts_done.size(); ++word)
        merged.parts_done[word] |= status.parts_done[word];
    }
  }
  std::optional<RunningStage> running;
  for (auto& [number, merged] : by_number) {
    merged.stage.parts_done = count_parts(merged.parts_done, merged.stage.description.parts);
    running = std::move(merged.stage);
    if (running->parts_done < running->description.parts) break;
  }
  return running;
}

std::vector<StageSummary> FlowStages::summaries() const {
  std::vector<StageSummary> all;
  for (const auto& [node, report] : reports_)
    for (const core::StageTotals& stage : report.totals) {
      auto same = std::ranges::find(all, stage.description, &StageSummary::description);
      if (same == all.end())
        same = all.insert(all.end(), StageSummary{.description = stage.description, .counts = {}});
      same->runs = std::max(same->runs, stage.runs);
      same->counts += stage.counts;
      same->seconds = std::max(same->seconds, stage.seconds);
    }
  return all;
}

RecomputedParts FlowStages::recomputed_parts() const {
  RecomputedParts recomputed;
  for (const auto& [node, report] : reports_) {
    recomputed.parts += report.parts_again;
    recomputed.is_minimum = recomputed.is_minimum || report.has_taken_over;
  }
  return recomputed;
}

std::string print(const RunningStage& stage) {
  return fmt::format("action {}, stage {} of {}, {}", stage.action, stage.number, stage.stages,
                     stage_line(stage.description, stage.parts_done, stage.counts, stage.seconds));
}

}  // namespace starling::program
