#include "starling/tools/repro/barriers/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

std::string goal_text(const BarrierFigures& barrier, std::size_t rate_index) {
  const auto& seconds = barrier.seconds_to_loss[rate_index];
  return seconds ? with_error(*seconds, 2) + " s" : "-";
}

TextTable cluster_table(const StudiedCluster& cluster) {
  TextTable table{{"barrier", "updates / bsp", "waiting", "staleness", "largest lag",
                   "loss, small rate", "loss, large rate"}};
  for (const BarrierTrials& runs : cluster.runs) {
    const BarrierFigures figures = figures_of(runs);
    const std::string name = barrier::print(runs.barrier);
    table.rows.push_back({name,
                          with_error(compute_statistics(update_ratios(cluster, name, "bsp")), 3),
                          fmt::format("{:.1f} %", 100 * figures.waiting_share.mean),
                          with_error(figures.staleness, 2), fmt::format("{:.0f}", figures.max_lag),
                          goal_text(figures, 0), goal_text(figures, 1)});
  }
  return table;
}

/// Returns a plot with a box for each barrier: its updates relative to those of bsp.
Plot updates_plot(const StudiedCluster& cluster, std::size_t index) {
  Plot plot{.name = "barriers-updates-" + std::to_string(index + 1),
            .title = "Updates relative to bsp: " + cluster.name,
            .y = "updates / updates of bsp",
            .style = PlotStyle::stacked};
  Series series{.name = "updates"};
  for (const BarrierTrials& runs : cluster.runs) {
    const std::string name = barrier::print(runs.barrier);
    plot.labels.push_back(name);
    const double x = static_cast<double>(series.points.size());
    series.points.push_back({x, compute_statistics(update_ratios(cluster, name, "bsp")).mean});
  }
  plot.series.push_back(std::move(series));
  return plot;
}

/// Returns the means over the seeds of a figure at each point of the curves.
template <class Figure>
Series curve_of(const BarrierTrials& runs, Figure figure) {
  Series series{.name = barrier::print(runs.barrier)};
  std::size_t points = runs.trials.front().curve.size();
  for (const Trial& trial : runs.trials) points = std::min(points, trial.curve.size());
  for (std::size_t i = 0; i < points; ++i) {
    double sum = 0;
    for (const Trial& trial : runs.trials) sum += figure(trial.curve[i]);
    series.points.push_back(
        {runs.trials.front().curve[i].seconds, sum / static_cast<double>(runs.trials.size())});
  }
  return series;
}

/// Returns `plot` with the curve of a figure over time for each barrier that also runs live and for
/// which is_plotted() is true.
template <class Figure>
Plot time_plot(const StudiedCluster& cluster, Plot plot, Figure figure) {
  plot.x = "virtual time (s)";
  for (const std::string& barrier : live_barriers())
    if (is_plotted(barrier)) plot.series.push_back(curve_of(*runs_of(cluster, barrier), figure));
  return plot;
}

/// Returns a loss within the limits of a plot, 1e-6 and 10. A loss that is not a number becomes 10.
double bounded_loss(double loss) { return loss < 10 ? std::max(loss, 1e-6) : 10; }

Section claims_section_of(const BarrierStudy& study, const std::vector<ComparedClaim>& claims) {
  return {
      "Published, simulated and live",
      {Paragraph{fmt::format(
           "{} of {} claims are reproduced by the simulation. Updates are those of all workers in "
           "{}, as a multiple of those under bsp: means over {} with their standard error. A "
           "claim is reproduced if the simulated number is within 3 % of the published one, and "
           "close if it is within 10 %. The papers' own speeds depend on their machines and "
           "models, so the column of published values has the numbers that earlier simulations of "
           "ours gave for the papers' algorithms. Live figures are those of two runs of each "
           "barrier with four workers, one at half speed: the first run with constant delays of "
           "20 ms, the second with exponential ones of 20 ms on average.",
           reproduced(claims), claims.size(), print_duration(studied_time),
           print_count(study.options.seeds, "seed"))},
       compared_claims_table(claims)}};
}

Section closing_section_of(const std::string& flags) {
  return {
      "How this was made",
      {Paragraph{fmt::format(
           "starling {} made the whole page, on {}, with this command: starling repro barriers "
           "{}. The same seeds give the same simulated figures on every machine; live figures "
           "differ from run to run.",
           version(), print_count(std::max(1U, std::thread::hardware_concurrency()), "processor"),
           flags)},
       Paragraph{
           "Sources: Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel "
           "Parameter Server, NIPS 2013. Zhao et al., Dynamic Stale Synchronous Parallel, ICDCS "
           "2019, arXiv 1908.11848. Zhao et al., Elastic Bulk Synchronous Parallel Model, "
           "ICDM 2019, arXiv 2001.01347. Yao et al., FluentPS, CLUSTER 2019. Chen et al., "
           "Revisiting Distributed Synchronous SGD, arXiv 1604.00981. Wang, Catterall, Mortier, "
           "Probabilistic Synchronous Parallel, arXiv 1709.07772. Zhang et al., Which Algorithmic "
           "Choices Matter at Which Batch Sizes?, NeurIPS 2019, arXiv 1907.04164 (the noisy "
           "quadratic model)."}}};
}

}  // namespace

bool is_plotted(const std::string& barrier) {
  return !barrier.starts_with("fluent") && !barrier.starts_with("pbsp");
}

Picture add_plot(std::vector<Plot>& plots, Plot plot, const std::string& caption) {
  Picture picture{plot.name, caption, {}};
  plots.push_back(std::move(plot));
  return picture;
}

std::vector<Section> cluster_sections(const BarrierStudy& study, std::vector<Plot>& plots) {
  Section figures{
      "Simulated clusters",
      {Paragraph{fmt::format(
          "A worker's step takes 100 ms on average, with a gamma distribution whose standard "
          "deviation is the jitter; a speed of 2 stands for steps twice as long. Every message of "
          "the job is simulated, for {} of virtual time. Staleness is the mean number of updates "
          "of other workers between a worker's read and its update. The last columns are the time "
          "until a noisy quadratic model has 1 % of its first loss, at learning rates of a third "
          "and of nine tenths of the largest that is stable without staleness; - means that some "
          "run did not get there before its last tenth.",
          print_duration(studied_time))}}};
  for (std::size_t i = 0; i < study.clusters.size(); ++i) {
    const StudiedCluster& cluster = study.clusters[i];
    figures.blocks.emplace_back(Paragraph{cluster.name + ":"});
    figures.blocks.emplace_back(cluster_table(cluster));
    figures.blocks.emplace_back(add_plot(plots, updates_plot(cluster, i),
                                         "Updates relative to bsp: " + cluster.name + "."));
  }
  const StudiedCluster& slow_one = study.clusters.front();
  Section time{"Over time, with one worker of four at half speed", {}};
  time.is_gallery = true;
  const auto add = [&](Plot plot, const std::string& caption, auto figure) {
    time.blocks.emplace_back(
        add_plot(plots, time_plot(slow_one, std::move(plot), figure), caption));
  };
  add({.name = "barriers-time-updates", .title = "Updates", .y = "updates of all workers"},
      "Updates over time.", [](const TrialPoint& point) { return point.updates; });
  add({.name = "barriers-time-spread", .title = "Fastest less slowest worker", .y = "steps"},
      "How far the fastest worker is ahead of the slowest.",
      [](const TrialPoint& point) { return point.spread; });
  add({.name = "barriers-loss-small",
       .title = "Loss at a small learning rate",
       .y = "loss / first loss",
       .log_y = true},
      "The loss at a third of the largest stable learning rate.",
      [](const TrialPoint& point) { return bounded_loss(point.losses[0]); });
  add({.name = "barriers-loss-large",
       .title = "Loss at a large learning rate",
       .y = "loss / first loss",
       .log_y = true},
      "The loss at nine tenths of the largest stable learning rate, at which stale updates may "
      "make it diverge. Losses above 10 are drawn as 10.",
      [](const TrialPoint& point) { return bounded_loss(point.losses[1]); });
  return {std::move(figures), std::move(time)};
}

StudyReport report_of(const BarrierStudy& study, const std::string& flags) {
  StudyReport report{.document = {"Barriers of the literature, reproduced", {}},
                     .claims = barrier_claims(study)};
  std::vector<Section>& sections = report.document.sections;
  sections.push_back(claims_section_of(study, report.claims));
  for (Section& section : cluster_sections(study, report.plots))
    sections.push_back(std::move(section));
  sections.push_back(live_section(study, report.plots));
  sections.push_back(map_section(study, report.plots));
  sections.push_back(closing_section_of(flags));
  return report;
}

}  // namespace starling::program
