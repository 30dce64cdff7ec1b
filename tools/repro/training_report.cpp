#include "starling/tools/repro/training_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/repro/repro_data.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

double steps_per_worker(const TrainingRun& run, const Training& training) {
  return final_updates(run) / static_cast<double>(training.job.options.job.workers);
}
/// The late accuracy of a run is that of its last fifth.
double late_mean(const TrainingRun& run) { return late_accuracy(run).mean; }
double late_sd(const TrainingRun& run) { return late_accuracy(run).sd; }

/// Returns a mean and, in brackets, the standard deviation: "0.894 (0.022)".
std::string with_sd(const Summary& values, int digits) {
  return fmt::format("{:.{}f} ({:.{}f})", values.mean, digits, values.sd, digits);
}

TextTable runs_table(const Training& training) {
  TextTable table{{"barrier", "updates", "steps a worker", "final accuracy", "late accuracy",
                   "late sd", "waiting", "beyond the delay"}};
  for (const BarrierRuns& runs : training.runs)
    table.rows.push_back(
        {barrier::print(runs.barrier), with_sd(over_runs(runs, final_updates), 1),
         fmt::format(
             "{:.1f}",
             over_runs(runs, [&](const auto& run) { return steps_per_worker(run, training); })
                 .mean),
         with_sd(over_runs(runs, final_accuracy), 3), with_sd(over_runs(runs, late_mean), 3),
         with_sd(over_runs(runs, late_sd), 4),
         fmt::format("{:.0f} %",
                     100 * over_runs(runs, [](const auto& run) { return run.waiting_share; }).mean),
         fmt::format("{:.0f} ms",
                     over_runs(runs, [](const auto& run) { return run.overhead_ms; }).mean)});
  return table;
}

/// A member of TrainingPoint.
using Figure = double TrainingPoint::*;

/// Returns the curve of the accuracy over the member `x`.
Series series_of(const std::string& name, const std::vector<TrainingPoint>& curve, Figure x) {
  Series series{.name = name};
  for (const TrainingPoint& point : curve) series.points.push_back({point.*x, point.accuracy});
  return series;
}

/// Returns a plot of the mean accuracy under each barrier over the member `x`, whose axis has the
/// label `label`.
Plot plot_of(const Training& training, const char* name, const char* title, const char* label,
             Figure x) {
  Plot plot{.name = name, .title = title, .x = label, .y = "accuracy on test samples"};
  for (const BarrierRuns& runs : training.runs)
    plot.series.push_back(series_of(barrier::print(runs.barrier), mean_curve(runs), x));
  return plot;
}

Plot plot_of_one_seed(const Training& training) {
  const std::uint64_t seed = training.options.seed;
  Plot plot{.name = one_seed_plot,
            .title = fmt::format("One run of each barrier (seed {})", seed),
            .x = "time (s)",
            .y = "accuracy on test samples"};
  for (const BarrierRuns& runs : training.runs)
    plot.series.push_back(
        series_of(barrier::print(runs.barrier), runs.runs.front().curve, &TrainingPoint::seconds));
  return plot;
}

Section claims_section(const ExperimentResults& results) {
  if (results.claims.empty())
    return {"Published and here", {Paragraph{"The paper does not compare these barriers."}}};
  return {
      "Published and here",
      {Paragraph{fmt::format("{} of {} claims are reproduced. Figures are means over the seeds, "
                             "with their standard error.",
                             results.reproduced(), results.claims.size())},
       claims_table(results)}};
}

Section setting_section(const Training& training) {
  const actor::TrainOptions& job = training.job.options;
  return {
      "What was trained",
      {Paragraph{fmt::format(
           "{} on {} ({}), {} workers around servers that hold the model, optimizer {}, batch "
           "{}. Each step of each worker is kept back by a random delay, {}. Every barrier "
           "trained for {} s under each of {}: seed by seed, one barrier after the other.",
           training.job.model, training.job.data, training.job.data_shape, job.job.workers,
           models::print(job.optimizer), actor::print_batch(job), print(job.job.delay),
           print_number(in_seconds(*job.job.time)), print_count(training.options.seeds, "seed"))},
       Paragraph{fmt::format(
           "The paper had 6 workers, the same net on MNIST, and delays of 1 s on average. {} "
           "models of each run were evaluated on {} test samples after the run, so that evaluating "
           "took no time from training: for each of as many equally spaced instants, the latest "
           "model that the servers had handed out before it. Late accuracy is over the last fifth "
           "of these evaluations.",
           training.options.evals,
           std::min<std::uint64_t>(training.options.samples, training.job.test_samples))}}};
}

Section closing_section(const Training& training) {
  return {
      "How this was made",
      {Paragraph{fmt::format(
          "starling {} made all of it, on {}: starling repro psp-train {}. The seeds fix "
          "the initial models, batches, delays and draws, but not how long computing and sending "
          "take: another run gives other figures. Source: Wang, Catterall, Mortier, Probabilistic "
          "Synchronous Parallel, arXiv 1709.07772.",
          version(), print_count(std::max(1U, std::thread::hardware_concurrency()), "processor"),
          print(training.options))}}};
}

Json training_figures(const Summary& values) {
  return {{"mean", values.mean}, {"sd", values.sd}, {"min", values.min}, {"max", values.max}};
}

}  // namespace

Document training_document(const Training& training, ExperimentResults& results) {
  add_training_claims(training.runs, results);
  Section curves{"Accuracy over updates and over time", {}};
  curves.blocks.emplace_back(
      results.add(plot_of(training, over_updates_plot, "Accuracy over updates",
                          "updates of all workers", &TrainingPoint::updates),
                  "Accuracy over updates; means over the seeds."));
  curves.blocks.emplace_back(results.add(
      plot_of(training, over_time_plot, "Accuracy over time", "time (s)", &TrainingPoint::seconds),
      "Accuracy over time; means over the seeds."));
  curves.blocks.emplace_back(
      results.add(plot_of_one_seed(training),
                  "One run of each barrier; means over seeds hide how much a run varies."));
  Section table{"What each barrier made of its time",
                {Paragraph{"Means over the seeds, in brackets their standard deviation. Columns: "
                           "late accuracy: the mean over the last fifth of a run's evaluations; "
                           "late sd: the standard deviation over them; beyond the delay: what a "
                           "step took to read, compute and push, and to wait for a processor."},
                 runs_table(training)}};
  return {"The PSP paper's training run, reproduced",
          {claims_section(results), setting_section(training), std::move(table), std::move(curves),
           closing_section(training)}};
}

std::string training_runs_csv(const Training& training) {
  TextTable table{{"barrier", "seed", "updates", "steps_min", "steps_median", "steps_max",
                   "final_accuracy", "late_accuracy_mean", "late_accuracy_sd", "waiting_share",
                   "overhead_ms"}};
  for (const BarrierRuns& runs : training.runs)
    for (const TrainingRun& run : runs.runs) {
      std::vector<std::string> row{barrier::print(runs.barrier), std::to_string(run.seed)};
      for (const double value :
           {final_updates(run), run.steps_min, run.steps_median, run.steps_max, final_accuracy(run),
            late_mean(run), late_sd(run), run.waiting_share, run.overhead_ms})
        row.push_back(print_number(value));
      table.rows.push_back(std::move(row));
    }
  return csv_text(table);
}

std::string training_curves_csv(const Training& training) {
  TextTable table{{"barrier", "seed", "seconds", "updates", "accuracy"}};
  for (const BarrierRuns& runs : training.runs)
    for (const TrainingRun& run : runs.runs)
      for (const TrainingPoint& point : run.curve)
        table.rows.push_back({barrier::print(runs.barrier), std::to_string(run.seed),
                              print_number(point.seconds), print_number(point.updates),
                              print_number(point.accuracy)});
  return csv_text(table);
}

std::string training_json(const Training& training, const ExperimentResults& results) {
  Json json{{"version", version()},
            {"flags", print(training.options)},
            {"model", training.job.model},
            {"claims", results.claims}};
  for (const BarrierRuns& runs : training.runs)
    json["barriers"].push_back(
        {{"barrier", barrier::print(runs.barrier)},
         {"updates", training_figures(over_runs(runs, final_updates))},
         {"final_accuracy", training_figures(over_runs(runs, final_accuracy))},
         {"late_accuracy_mean", training_figures(over_runs(runs, late_mean))},
         {"late_accuracy_sd", training_figures(over_runs(runs, late_sd))},
         {"waiting_share",
          training_figures(over_runs(runs, [](const auto& run) { return run.waiting_share; }))},
         {"overhead_ms",
          training_figures(over_runs(runs, [](const auto& run) { return run.overhead_ms; }))}});
  return json_text(json, 1) + "\n";
}

}  // namespace starling::program
