#include <fmt/format.h>

#include <optional>

#include "starling/base/text.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/job/barrier_notes.hpp"
#include "starling/tools/job/topology_file.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/registry/net_file.hpp"
#include "starling/tools/report/report_files.hpp"
#include "starling/tools/report/report_folder.hpp"
#include "starling/tools/sim/learning.hpp"
#include "starling/tools/sim/run_display.hpp"
#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/sim/sim_report.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// Returns the name of a trace's file; empty for other distributions.
std::string trace_file(const Distribution& distribution) {
  const auto* trace = std::get_if<laws::Trace>(&distribution.law());
  return trace == nullptr ? std::string{} : trace->file;
}

using Folders = std::vector<ReportFolder>;

/// Makes the folder of the plots. Returns an Error if an output cannot be written, or would
/// overwrite an input or another output.
Result<Folders> prepare_outputs(const SimJob& job, const Settings& settings,
                                const Registry& registry, const std::string& job_file) {
  std::vector<FileUse> taken{{"the job", job_file},
                             {"the step time", trace_file(job.options.step_time)},
                             {"the latency", trace_file(job.link.latency)},
                             {"held-up-by", trace_file(job.link.delay)}};
  if (job.level == Level::protocol || job.epochs)
    for (const Setting& setting : settings)
      if (setting.key == "data" || setting.key == "test")
        for (const std::string& file : files_in(registry, setting.text))
          taken.push_back({setting.location, file});
  if (job.level == Level::protocol) {
    if (const auto model = Spec::parse(text_of(settings, "model")))
      taken.push_back({location_of(settings, "model"), net_file_in(*model)});
    taken.push_back(
        {location_of(settings, "exchange"), topology_file_in(text_of(settings, "exchange"))});
  }
  if (!job.csv.empty()) {
    const FileUse csv{location_of(settings, "csv"), job.csv};
    if (auto free = check_no_conflict(csv, taken); !free) return std::move(free).error();
    if (auto writable = check_writable(csv.path); !writable)
      return std::move(writable).error().within(csv.location);
    taken.push_back(csv);
  }
  Folders folders;
  if (job.plots.empty()) return folders;
  std::vector<std::string> names;
  for (const auto& plot : sim_plot_names(job))
    for (const auto& file : plot_file_names(plot)) names.push_back(file);
  auto plots = ReportFolder::prepare({location_of(settings, "plots"), job.plots}, names, taken);
  if (!plots) return std::move(plots).error();
  folders.push_back(*std::move(plots));
  return folders;
}

/// Warns if the job's limit of steps is so low that barriers differ little.
void warn_of_few_steps(const SimJob& job, const Settings& settings) {
  constexpr core::Step steps_min = 20;
  if (job.options.steps_max >= steps_min) return;
  const std::string epochs = location_of(settings, "epochs");
  const std::string steps = location_of(settings, "steps");
  print_error(
      fmt::format("{}: a worker makes {} at most, too few to compare barriers; valid: {} or more"
                  "{}",
                  !epochs.empty() ? epochs
                  : steps.empty() ? "the job"
                                  : steps,
                  print_count(job.options.steps_max, "step"), steps_min,
                  epochs.empty() ? "" : ", by more epochs or --steps"));
}

SimRuns simulate_steps(const SimJob& job,
                       const std::function<void(const OverallProgress&)>& on_progress) {
  std::vector<sim::StepOptions> options;
  for (std::size_t barrier = 0; barrier < job.barriers.size(); ++barrier)
    for (std::uint64_t i = 0; i < job.seeds; ++i)
      options.push_back(run_options(job, barrier, job.options.seed + i));
  std::optional<LinearProblem> problem;
  if (job.learn)
    problem = LinearProblem::make(linear_parameters, linear_samples, job.options.seed).value();
  return simulate_all(options, threads_of(job), on_progress, problem ? &*problem : nullptr);
}

/// Makes the runs of all barriers and seeds. `learning` is null at the step level.
Result<Simulated> simulate(const SimJob& job, const Learning* learning) {
  RunDisplay display{job.quiet, "simulating"};
  const auto on_progress = [&](const OverallProgress& done) { display.show(done); };
  Result<SimRuns> made = learning == nullptr ? simulate_steps(job, on_progress)
                                             : simulate_learning(job, *learning, on_progress);
  if (!made) return std::move(made).error();
  SimRuns& runs = *made;
  display.finish(runs);
  Simulated simulated;
  for (std::size_t barrier = 0; barrier < job.barriers.size(); ++barrier) {
    const auto from = runs.begin() + static_cast<std::ptrdiff_t>(barrier * job.seeds);
    simulated.emplace_back(std::make_move_iterator(from),
                           std::make_move_iterator(from + static_cast<std::ptrdiff_t>(job.seeds)));
  }
  return simulated;
}

/// Draws the plots into SVG files in the folder.
Result<void> write_pictures(const std::string& folder, const std::vector<Plot>& plots) {
  for (const Plot& plot : plots) {
    const auto svg = draw(plot);
    if (!svg)
      return Error{folder +
                   ": holds the data of the plots, but no pictures: " + svg.error().message};
    if (auto put = replace_file(path_inside(folder, plot.name + ".svg"), *svg); !put) return put;
  }
  return {};
}

/// Writes the CSV file and the plots, whose data is written before their pictures. Prints the
/// errors. Returns the exit code: job_failed if something could not be written, except pictures on
/// a machine without gnuplot.
int write_files(const SimJob& job, const Simulated& simulated) {
  int code = done;
  const auto report = [&](const Result<void>& written, bool is_failure) {
    if (written) return true;
    print_error(written.error().message);
    if (is_failure) code = job_failed;
    return false;
  };
  if (!job.csv.empty()) report(replace_file(job.csv, sim_csv(job, simulated)), true);
  if (job.plots.empty()) return code;
  const std::vector<Plot> plots = sim_plots(job, simulated);
  if (report(write_plot_sources(plots, job.plots), true))
    report(write_pictures(job.plots, plots), has_gnuplot());
  return code;
}

}  // namespace

Result<int> sim_command(const Registry& registry, const Settings& settings,
                        const std::string& job_file) {
  auto job = make_sim_job(settings, registry, !job_file.empty());
  if (!job) return job.error();
  auto folders = prepare_outputs(*job, settings, registry, job_file);
  if (!folders) return std::move(folders).error();
  std::optional<Learning> learning;
  if (job->level == Level::protocol) {
    auto made = make_learning(*job, settings, registry);
    if (!made) return std::move(made).error();
    learning = *std::move(made);
    job->learned = learning->learned;
  }
  if (!job->quiet) warn_of_unused_recheck(job->barriers, settings);
  if (!job->quiet) note_full_quorums(job->barriers, job->options.workers, settings);
  if (!job->quiet) warn_of_few_steps(*job, settings);
  const auto simulated = simulate(*job, learning ? &*learning : nullptr);
  if (!simulated) {
    print_error(simulated.error().message);
    return job_failed;
  }
  const int code = write_files(*job, *simulated);
  return write_stdout(job->json ? sim_json(*job, *simulated) + "\n" : sim_table(*job, *simulated),
                      code);
}

}  // namespace starling::program
