#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/repro/barriers/study_report.hpp"

namespace starling::program {
namespace {

TextTable live_table(const BarrierStudy& study) {
  TextTable table{{"barrier", "delay", "live updates/s", "simulated", "difference", "live waiting",
                   "simulated", "beyond the delay", "within 5 %"}};
  for (const LiveComparison& run : study.live)
    table.rows.push_back(
        {barrier::print(run.barrier), run.delay, fmt::format("{:.1f}", run.updates / run.seconds),
         fmt::format("{:.1f}", run.simulated.updates.mean / run.seconds),
         fmt::format("{:+.1f} %", 100 * (run.ratio() - 1)),
         fmt::format("{:.1f} %", 100 * run.waiting_share),
         fmt::format("{:.1f} %", 100 * run.simulated.waiting_share.mean),
         fmt::format("{:.2f} ms", 1000 * run.overhead_s), run.agrees() ? "yes" : "NO"});
  return table;
}

Plot live_plot(const BarrierStudy& study) {
  Plot plot{.name = "barriers-live",
            .title = "Live and simulated updates",
            .x = "simulated updates/s",
            .y = "live updates/s",
            .is_zoomed = true};
  for (const char* delay : {constant_delay, exponential_delay}) {
    Series series{.name = delay, .is_marked = true};
    for (const LiveComparison& run : study.live)
      if (run.delay == delay)
        series.points.push_back(
            {run.simulated.updates.mean / run.seconds, run.updates / run.seconds});
    plot.series.push_back(std::move(series));
  }
  double least = study.live.front().updates / study.live.front().seconds;
  double most = least;
  for (const LiveComparison& run : study.live) {
    least = std::min({least, run.updates / run.seconds, run.simulated.updates.mean / run.seconds});
    most = std::max({most, run.updates / run.seconds, run.simulated.updates.mean / run.seconds});
  }
  plot.series.push_back({.name = "equal", .points = {{least, least}, {most, most}}});
  return plot;
}

/// Returns the stragglers of a cluster, such as "25 % 4x": their share, and how much slower they
/// are.
std::string print_cluster_share(const ClusterKind& cluster) {
  return cluster.straggler_share > 0
             ? fmt::format("{:.0f} % {:.0f}x", 100 * cluster.straggler_share, cluster.slowness)
             : "none";
}

/// Prints the winner by a measure, with the figure by which it won.
std::string winner_text(const WinnerMapCell& cell, std::size_t measure) {
  const auto& winner = cell.winners[measure];
  if (!winner) return "-";
  const BarrierFigures& best = cell.barriers[winner->barrier];
  const std::string name = barrier::print(best.barrier);
  switch (measures[measure]) {
    case Measure::updates:
      return fmt::format("{} ({:.2f})", name,
                         best.updates.mean / cell.barriers.front().updates.mean);
    case Measure::staleness:
      return fmt::format("{} ({:.2f})", name, best.staleness.mean);
    case Measure::seconds_at_small_rate:
      return fmt::format("{} ({:.2f} s)", name, best.seconds_to_loss[0]->mean);
    case Measure::seconds_at_large_rate:
      return fmt::format("{} ({:.2f} s)", name, best.seconds_to_loss[1]->mean);
  }
  return {};
}

TextTable map_table(const BarrierStudy& study) {
  TextTable table{{"workers", "stragglers", "jitter"}};
  for (const Measure measure : measures) table.head.push_back(print(measure));
  for (const WinnerMapCell& cell : study.map) {
    std::vector<std::string> row{std::to_string(cell.cluster.workers),
                                 print_cluster_share(cell.cluster),
                                 fmt::format("{:.0f} %", 100 * cell.cluster.jitter)};
    for (std::size_t m = 0; m < measures.size(); ++m) row.push_back(winner_text(cell, m));
    table.rows.push_back(std::move(row));
  }
  table.holds_words = true;
  return table;
}

/// Returns a table with the number of clusters in which each barrier wins.
TextTable wins_table(const BarrierStudy& study) {
  std::map<std::string, std::array<std::size_t, measures.size()>> wins;
  std::vector<std::string> order;
  for (const WinnerMapCell& cell : study.map) {
    for (const BarrierFigures& barrier : cell.barriers)
      if (wins.try_emplace(barrier::print(barrier.barrier)).second)
        order.push_back(barrier::print(barrier.barrier));
    for (std::size_t m = 0; m < measures.size(); ++m)
      if (const auto& winner = cell.winners[m])
        ++wins[barrier::print(cell.barriers[winner->barrier].barrier)][m];
  }
  TextTable table{{"barrier"}};
  for (const Measure measure : measures) table.head.push_back(print(measure));
  for (const std::string& barrier : order) {
    std::vector<std::string> row{barrier};
    for (const std::size_t count : wins[barrier]) row.push_back(std::to_string(count));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Returns a curve for each barrier over the slowness of a quarter of the workers. Clusters without
/// stragglers have slowness 1. Leaves out points at which `figure` returns nothing.
template <class Figure>
Plot slowness_plot(const BarrierStudy& study, Plot plot, Figure figure) {
  plot.x = "slowness of a quarter of the workers";
  plot.style = PlotStyle::points;
  plot.log_x = true;
  // The map has clusters of the fewest workers, with the smallest jitter, in every form.
  const ClusterKind& first = study.map.front().cluster;
  for (const WinnerMapCell& cell : study.map) {
    const ClusterKind& cluster = cell.cluster;
    if (cluster.workers != first.workers || cluster.jitter != first.jitter ||
        (cluster.straggler_share != 0 && cluster.straggler_share != 0.25))
      continue;
    for (const BarrierFigures& barrier : cell.barriers) {
      const std::string name = barrier::print(barrier.barrier);
      if (!is_plotted(name)) continue;
      auto series = std::ranges::find(plot.series, name, &Series::name);
      if (series == plot.series.end()) series = plot.series.insert(series, Series{.name = name});
      if (const std::optional<double> y = figure(cell, barrier))
        series->points.push_back({cluster.slowness, *y});
    }
  }
  std::erase_if(plot.series, [](const Series& series) { return series.points.empty(); });
  return plot;
}

}  // namespace

Section live_section(const BarrierStudy& study, std::vector<Plot>& plots) {
  const auto agreeing = std::ranges::count_if(study.live, &LiveComparison::agrees);
  return {
      "Live beside simulated",
      {Paragraph{fmt::format(
           "Each barrier ran live for {} with four workers in central mode, the last of them at "
           "half speed, and was then simulated for the same time with the same delays, step by "
           "step, under {} for the draws of the barriers. A simulated step also takes the time "
           "that "
           "a live step took beyond its delay on average. As published, dssp compares predicted "
           "times "
           "that differ only by this overhead if delays are constant, so its runs may differ. "
           "{} of {} live runs made updates within 5 % of the simulation.",
           print_duration(study.options.live), print_count(study.options.seeds, "seed"), agreeing,
           study.live.size())},
       live_table(study),
       add_plot(plots, live_plot(study), "Each point is a barrier; on the line, both are equal.")}};
}

Section map_section(const BarrierStudy& study, std::vector<Plot>& plots) {
  Section section{
      "Which barrier wins where",
      {Paragraph{fmt::format(
           "{} kinds of clusters, simulated in central mode for 150 steps of the slowest worker: "
           "they differ in the number of workers, the share of stragglers, the factor by which "
           "stragglers are slower, and the jitter of all steps. Barriers within {:.0f} % of the "
           "best count as equally good; among these, the one with the least stale updates wins. "
           "Without another condition, bsp has the least stale updates everywhere, so that column "
           "compares only barriers with at least 90 % of the most updates. Numbers in brackets: "
           "updates relative to bsp; staleness; seconds to the loss. A table first says in how "
           "many clusters each barrier wins.",
           study.map.size(), 100 * equal_within)},
       wins_table(study),
       FoldedTable{"map", "The winners in each kind of cluster", map_table(study)}}};
  section.blocks.emplace_back(add_plot(
      plots,
      slowness_plot(
          study,
          {.name = "barriers-map-updates",
           .title = "Updates relative to bsp, by slowness",
           .y = "updates / updates of bsp"},
          [](const WinnerMapCell& cell, const BarrierFigures& barrier) -> std::optional<double> {
            return barrier.updates.mean / cell.barriers.front().updates.mean;
          }),
      "Four workers, one of them slower, 5 % jitter."));
  section.blocks.emplace_back(add_plot(
      plots,
      slowness_plot(
          study,
          {.name = "barriers-map-loss",
           .title = "Time to the loss at a small rate, by slowness",
           .y = "virtual time (s)"},
          [](const WinnerMapCell&, const BarrierFigures& barrier) -> std::optional<double> {
            if (!barrier.seconds_to_loss[0]) return std::nullopt;
            return barrier.seconds_to_loss[0]->mean;
          }),
      "The same clusters: seconds until 1 % of the first loss."));
  return section;
}

}  // namespace starling::program
