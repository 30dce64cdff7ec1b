#include <algorithm>

#include "starling/tools/sim/barrier_messages.hpp"
#include "starling/tools/sim/sim_report.hpp"

namespace starling::program {
namespace {

/// Returns the loss over time. The loss is the first of the model's metrics.
Series loss_over_time(const std::string& name, const SimRuns& runs) {
  return over_time(name, runs, [](const SimRun& run, const sim::Point& point) {
    const auto found = std::ranges::lower_bound(run.curve, point.at, {}, &sim::Point::at);
    return run.metrics[static_cast<std::size_t>(found - run.curve.begin())].at(0).value;
  });
}

/// Adds a curve for each barrier to a plot. `curve` makes it from the barrier's name and its runs.
template <class Curve>
Plot with_curves(Plot plot, const SimJob& job, const Simulated& simulated, Curve curve) {
  for (std::size_t i = 0; i < simulated.size(); ++i)
    plot.series.push_back(curve(barrier::print(job.barriers[i]), simulated[i]));
  return plot;
}

/// Adds a curve over time for each barrier to a plot.
Plot plot_over_time(Plot plot, const SimJob& job, const Simulated& simulated,
                    double (*figure)(const SimRun&, const sim::Point&)) {
  plot.x = "virtual time (s)";
  return with_curves(std::move(plot), job, simulated, [&](const auto& name, const SimRuns& runs) {
    return over_time(name, runs, figure);
  });
}

/// Returns a plot of the messages for each step of a worker, by kind. Leaves out kinds that no
/// barrier sends.
Plot message_plot(const SimJob& job, const Simulated& simulated) {
  Plot plot{.name = "messages",
            .title = "Messages of barrier control",
            .y = "messages for each step of one worker",
            .style = PlotStyle::stacked};
  for (const auto& barrier : job.barriers) plot.labels.push_back(barrier::print(barrier));
  for (const auto& [name, kind] : barrier_messages) {
    Series series{.name = name};
    for (std::size_t i = 0; i < simulated.size(); ++i)
      series.points.push_back(
          {static_cast<double>(i), over_runs(simulated[i], [count = kind](const SimRun& run) {
                                     return static_cast<double>(run.messages.*count) /
                                            std::max(1.0, static_cast<double>(run.updates));
                                   }).mean});
    if (std::ranges::any_of(series.points, [](const PlotPoint& p) { return p.y > 0; }))
      plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

std::vector<std::string> sim_plot_names(const SimJob& job) {
  std::vector<std::string> names{"steps", "progress", "spread", "waiting", "messages"};
  if (job.level == Level::protocol) names.emplace_back("loss");
  if (job.learn) names.emplace_back("error");
  return names;
}

std::vector<Plot> sim_plots(const SimJob& job, const Simulated& simulated) {
  std::vector<Plot> plots{
      with_curves({.name = "steps",
                   .title = "How far the workers came",
                   .x = "steps that a worker has finished by the end",
                   .y = "workers with at most this number of steps (%)",
                   .style = PlotStyle::steps,
                   .is_share = true},
                  job, simulated, steps_cdf),
      plot_over_time(
          {.name = "progress", .title = "Progress", .y = "steps finished, mean of the workers"},
          job, simulated,
          [](const SimRun& run, const sim::Point& point) {
            return static_cast<double>(point.updates) / static_cast<double>(run.workers);
          }),
      plot_over_time({.name = "spread",
                      .title = "Spread of the workers",
                      .y = "steps between the fastest and the slowest",
                      .has_panels = true},
                     job, simulated,
                     [](const SimRun&, const sim::Point& point) {
                       return static_cast<double>(point.max - point.min);
                     }),
      plot_over_time({.name = "waiting",
                      .title = "Waiting at the barrier",
                      .y = "workers that wait (%)",
                      .is_share = true,
                      .has_panels = true},
                     job, simulated,
                     [](const SimRun&, const sim::Point& point) { return point.waiting; }),
      message_plot(job, simulated),
  };
  if (job.level == Level::protocol)
    plots.push_back(with_curves(
        {.name = "loss", .title = "Loss of the model", .x = "virtual time (s)", .y = "mean loss"},
        job, simulated, loss_over_time));
  if (job.learn)
    plots.push_back(with_curves({.name = "error",
                                 .title = "Error of a linear model of 1,000 parameters",
                                 .x = "virtual time (s)",
                                 .y = "normalised error",
                                 .log_y = true},
                                job, simulated, error_over_time));
  return plots;
}

}  // namespace starling::program
