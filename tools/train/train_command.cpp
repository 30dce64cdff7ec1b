#include <filesystem>
#include <optional>
#include <string>

#include "starling/actor/job/timeline.hpp"
#include "starling/tools/files/metrics_file.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/memory.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/prepare.hpp"
#include "starling/tools/train/recorder.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {
namespace {

/// Returns a message about a file that a failed job did not write.
std::string unwritten_text(const std::string& path) {
  std::error_code ignored;
  return path + (std::filesystem::exists(path, ignored) ? ": is as it was" : ": was not written");
}

void print_errors_of(const EndedJob& ended, const Job& job) {
  print_error(ended.error);
  if (!ended.saved.empty())
    print_error("the last good model is in " + ended.saved);
  else if (!job.save.empty())
    print_error(unwritten_text(job.save) + (ended.has_model ? ", the model could not be saved"
                                                            : ", there is no good model to save"));
  if (!ended.checkpoint.empty())
    print_error("the last checkpoint is in " + ended.checkpoint);
  else if (!job.checkpoint.empty())
    print_error(unwritten_text(job.checkpoint));
  if (!ended.report.empty())
    print_error("the report is in " + ended.report);
  else if (!job.report.empty())
    print_error(unwritten_text(job.report));
  if (!ended.trace.empty())
    print_error("the trace is in " + ended.trace);
  else if (!job.trace.empty())
    print_error(unwritten_text(job.trace));
}

}  // namespace

int report(const EndedJob& ended, const Job& job) {
  if (!ended.error.empty()) print_errors_of(ended, job);
  const int code = !ended.error.empty() ? job_failed : ended.interrupted ? interrupted_code : done;
  const auto put = write_stdout(job.json ? summary_json(ended) + "\n" : summary_table(ended), code);
  return put ? *put : job_failed;
}

Result<int> train_command(const Registry& registry, const Settings& settings,
                          const std::string& job_file) {
  // Checks that the checkpoint exists. It is read only after the data, whose loading may take
  // minutes.
  std::error_code ignored;
  if (const auto file = text_of(settings, "resume");
      !file.empty() && !std::filesystem::exists(file, ignored))
    return Error{location_of(settings, "resume") + ": " + file + ": no such file"};
  auto ready = prepare(registry, settings, job_file);
  if (!ready) return std::move(ready).error();
  if (auto fits = check_memory(*ready->model, ready->resolved.options); !fits)
    return add_location(std::move(fits).error(), settings);
  if (!ready->resume_note.empty()) print_error(ready->resume_note);
  auto metrics = MetricsFile::open(ready->job.metrics, !ready->job.resume.empty());
  if (!metrics) return std::move(metrics).error().within(location_of(settings, "metrics"));
  std::optional<actor::Timeline> timeline;
  if (!ready->job.trace.empty())
    ready->resolved.options.job.timeline = &timeline.emplace(ready->resolved.options.job.workers);
  Recorder recorder{*ready, *std::move(metrics)};
  auto options = ready->resolved.options;
  // Before the members begin there is nothing to save, so a signal ends the program at once, even
  // if it takes long to initialise a large model.
  std::optional<GracefulStop> graceful;
  options.job.on_start = [&, start_own_actors = options.job.on_start](const auto& actors,
                                                                      auto& system) {
    if (start_own_actors) start_own_actors(actors, system);
    graceful.emplace(ready->job.quiet ? nullptr : stop_message_without_saving);
  };
  options.job.on_progress = [&](const actor::Progress& p) { return recorder.on_progress(p); };
  options.job.on_evaluated = [&](const actor::Progress& progress, const auto& states) {
    return recorder.on_evaluated(progress, states);
  };
  if (!ready->job.checkpoint.empty())
    options.job.on_checkpoint = [&](const auto& states, const auto& deals) {
      recorder.on_checkpoint(states, deals);
    };
  const auto outcome = ready->model->train(ready->data.train, ready->test(), options);
  if (!outcome) return add_location(outcome.error(), settings);
  if (timeline) recorder.set_trace(trace_of(ready->resolved, *timeline));
  return report(recorder.end(*outcome), ready->job);
}

}  // namespace starling::program
