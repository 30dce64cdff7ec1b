#include "starling/tools/train/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/train/report_evaluations.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the updates of this run, without those of the checkpoint from which it resumed.
std::uint64_t updates_made(const ResolvedJob& job, const actor::Progress& progress) {
  return progress.updates - std::min(progress.updates, job.steps_before);
}

double updates_per_second(const ResolvedJob& job, const actor::Progress& progress) {
  const double elapsed = in_seconds(progress.elapsed);
  return elapsed > 0 ? static_cast<double>(updates_made(job, progress)) / elapsed : 0;
}

double mean_step(const ResolvedJob& job, const actor::Progress& progress) {
  return progress.mean_step_of(job.options.job.workers);
}

/// Returns how many epochs the workers have taken on average.
double data_epoch(const ResolvedJob& job, const actor::Progress& progress) {
  return progress.data_epoch.value_or(mean_step(job, progress) /
                                      static_cast<double>(job.steps_per_epoch));
}

/// Returns whether the model was evaluated after the job began or resumed.
bool is_tested(const ResolvedJob& job, const actor::Progress& progress) {
  const double updates = progress.evaluated_at * static_cast<double>(job.options.job.workers);
  return !progress.test.empty() && updates > static_cast<double>(job.steps_before) + 0.5;
}

/// Returns the seconds until the job reaches its limit of time or of steps, whichever comes first;
/// nothing if that is unknown. If the job is stalled, the time of the last step is unknown.
std::optional<double> seconds_left(const ResolvedJob& job, const actor::Progress& progress,
                                   bool is_stalled) {
  std::optional<double> left;
  const auto& options = job.options.job;
  const double elapsed = in_seconds(progress.elapsed);
  if (options.time) left = std::max(0.0, in_seconds(*options.time) - elapsed);
  const double step = mean_step(job, progress);
  const double step_before =
      static_cast<double>(job.steps_before) / static_cast<double>(options.workers);
  const double rate = elapsed > 0 ? (step - step_before) / elapsed : 0;
  if (options.steps != barrier::unlimited && rate > 0 && !is_stalled) {
    const double steps_left =
        static_cast<double>(progress.last_step.value_or(options.steps)) - step;
    left = std::min(left.value_or(1e18), std::max(0.0, steps_left) / rate);
  }
  return left;
}

std::string duration_text(double s) {
  if (s < 0.0995) return fmt::format("{:.1f} ms", 1000 * s);
  if (s < 9.95) return fmt::format("{:.1f} s", s);
  if (s < 120) return fmt::format("{:.0f} s", s);
  if (s < 7200) {
    const double whole = std::round(s);
    return fmt::format("{:.0f} min {:02.0f} s", std::floor(whole / 60), std::fmod(whole, 60));
  }
  return fmt::format("{:.1f} h", s / 3600);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string metric_text(const models::Metric& metric) {
  if (metric.name == "accuracy") return "accuracy " + percent(metric.value);
  return fmt::format("{} {:.4g}", metric.name, metric.value);
}

std::string metrics_text(const models::Metrics& metrics) {
  std::string text;
  for (const auto& metric : metrics) text += (text.empty() ? "" : ", ") + metric_text(metric);
  return text;
}

std::string end_text(const EndedJob& ended) {
  if (!ended.error.empty()) return "failed";
  if (ended.interrupted) return "interrupted";
  if (ended.patience > 0) return "stopped early";
  switch (ended.outcome.end) {
    case actor::Outcome::End::completed:
      return "completed";
    case actor::Outcome::End::reached:
      return "reached";
    case actor::Outcome::End::stopped:
      return "stopped";
    case actor::Outcome::End::failed:
      return "failed";
  }
  return {};
}

/// Returns the step that a job had reached when it was stopped; empty for other jobs.
std::string reached_text(const EndedJob& ended) {
  const core::Step steps = ended.outcome.last.last_step.value_or(ended.job.options.job.steps);
  const bool is_stopped = ended.outcome.end == actor::Outcome::End::stopped || ended.patience > 0;
  if (!is_stopped || steps == barrier::unlimited) return {};
  return fmt::format(", at step {} of {}", ended.outcome.last.spread.median, steps);
}

/// Returns the recheck policy; empty if the barrier draws no workers.
std::string recheck_text(const actor::JobOptions& options) {
  if (!barrier::is_sampled(options.barrier)) return {};
  return barrier::print(options.recheck.value_or(core::default_recheck(options.mode)));
}

/// Returns the delay's text; empty if there is no delay.
std::string delay_text(const actor::JobOptions& options) {
  return options.delay == Distribution{} ? std::string{} : print(options.delay);
}

std::vector<std::string> straggler_texts(const actor::JobOptions& options) {
  std::vector<std::string> texts;
  for (const auto& straggler : options.stragglers) texts.push_back(print(straggler));
  return texts;
}

/// Returns the optimiser with its batch, and with its schedule and l2 if they are set.
std::string optimizer_text(const ResolvedJob& job) {
  const actor::TrainOptions& options = job.options;
  if (!job.learns_by_gradients) return "none: the algorithm computes its updates";
  std::string text = models::print(options.optimizer);
  if (options.schedule != models::Schedule{})
    text += job.has_default_schedule ? ", its rate falls over the job"
                                     : ", " + models::print(options.schedule);
  if (options.l2 > 0) text += fmt::format(", l2 {:.3g}", options.l2);
  if (models::compresses(options.compression))
    text += ", compression " + models::print(options.compression);
  return text + ", batch " + actor::print_batch(options);
}

Json spread_json(const actor::Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

void add_metrics(Json& json, const std::string& prefix, const models::Metrics& metrics) {
  for (const auto& metric : metrics) json[prefix + metric.name] = metric.value;
}

void add_figures(Json& json, const ResolvedJob& job, const actor::Progress& last) {
  json["updates"] = total_updates(job, last);
  json["updates_per_s"] = updates_per_second(job, last);
  json["wall_s"] = in_seconds(last.elapsed);
  json["waiting_share"] = last.waiting_share;
  json["spread"] = spread_json(last.spread);
  // On a cluster, nodes report steps at different times, so the largest lag is not known.
  if (job.id.empty()) json["max_lag"] = last.max_lag;
  if (barrier::is_sampled(job.options.job.barrier))
    json.update({{"draws", last.draws}, {"passes", last.passes}});
  if (last.tuned.workers > 0)
    json["tuned"] = {{"s", last.tuned.mean_staleness()}, {"beta", last.tuned.mean_beta()}};
  if (job.options.job.cache)
    json.update({{"reads", last.reads.ranges}, {"pulls", last.reads.pulled}});
  if (!last.batches.empty()) json["batches"] = last.batches;
  if (last.longest_gap) json["longest_gap_s"] = in_seconds(*last.longest_gap);
}

void add_settings(Json& json, const ResolvedJob& job) {
  const auto& options = job.options;
  if (!job.id.empty()) json["job"] = job.id;
  if (!job.name.empty()) json["name"] = job.name;
  json["mode"] = core::print(options.job.mode);
  json["barrier"] = barrier::print(options.job.barrier);
  if (const auto recheck = recheck_text(options.job); !recheck.empty()) json["recheck"] = recheck;
  json["exchange"] = options.job.exchange;
  if (options.job.cache) json["cache"] = true;
  json["workers"] = options.job.workers;
  if (const auto delay = delay_text(options.job); !delay.empty()) json["delay"] = delay;
  if (const auto slow = straggler_texts(options.job); !slow.empty()) json["straggler"] = slow;
  json["seed"] = options.job.seed;
  json["model"] = job.model;
  json["dtype"] = print(job.element_type);
  if (job.id.empty()) json["device"] = job.device;  // each node of a cluster uses its own
  json["data"] = job.data;
  json["train_samples"] = job.train_samples;
  if (job.test_samples > 0) json["test_samples"] = job.test_samples;
  if (!job.scale.empty()) json["scale"] = job.scale;
  if (job.learns_by_gradients) json["optimizer"] = models::print(options.optimizer);
  if (options.schedule != models::Schedule{}) json["schedule"] = models::print(options.schedule);
  if (options.l2 > 0) json["l2"] = options.l2;
  if (models::compresses(options.compression))
    json["compression"] = models::print(options.compression);
  if (job.learns_by_gradients)
    json["batch"] =
        options.dynamic_batches ? Json(actor::print_batch(options)) : Json(options.batch);
  // On a cluster, the number of servers depends on the nodes.
  if (core::has_servers(options.job.mode) && job.id.empty())
    json["shards"] = actor::owner_count(options.job);
}

Json summary(const EndedJob& ended) {
  Json json;
  add_settings(json, ended.job);
  json["end"] = end_text(ended);
  add_figures(json, ended.job, ended.outcome.last);
  if (!ended.job.id.empty()) {
    json["workers_finished"] = ended.workers.finished;
    json["workers_left"] = ended.workers.left;
    json["workers_died"] = ended.workers.died;
    json["workers_lost"] = ended.workers.lost();
    if (ended.workers.have_equal_copies) json["equal_copies"] = *ended.workers.have_equal_copies;
  }
  json.update(evaluations_json(ended));
  add_metrics(json, "train_", train_metrics_of(ended));
  add_metrics(json, "test_", test_metrics_of(ended));
  if (ended.normalised_error) json["normalised_error"] = *ended.normalised_error;
  if (!ended.saved.empty()) json["saved"] = ended.saved;
  if (!ended.checkpoint.empty()) json["checkpoint"] = ended.checkpoint;
  if (!ended.report.empty()) json["report"] = ended.report;
  if (!ended.trace.empty()) json["trace"] = ended.trace;
  if (!ended.advice.empty()) json["notes"] = ended.advice;
  if (!ended.error.empty()) json["error"] = ended.error;
  json["version"] = version();
  return json;
}

std::string json_line(const Json& json) { return json_text(json); }

Json event(const char* name, const actor::Progress& progress) {
  Json json;
  json["event"] = name;
  json["elapsed_s"] = in_seconds(progress.elapsed);
  return json;
}

/// Returns a row of the summary; empty if the value is empty.
std::string report_row(const char* name, const std::string& value) {
  return value.empty() ? std::string{} : fmt::format("  {:<12}{}\n", name, value);
}

std::string members_text(const ResolvedJob& job) {
  const actor::JobOptions& options = job.options.job;
  std::string text = core::print(options.mode) + ", " + print_count(options.workers, "worker");
  if (core::has_servers(options.mode) && job.id.empty())
    text += ", " + print_count(actor::owner_count(options), "shard");
  return text;
}

/// Returns the workers' steps at the end and, in one process, the largest lag.
std::string spread_text(const ResolvedJob& job, const actor::Progress& last) {
  const std::string lag = job.id.empty() ? fmt::format("; at most {} apart", last.max_lag) : "";
  return fmt::format("min {}, median {}, max {}{}", last.spread.min, last.spread.median,
                     last.spread.max, lag);
}

std::string fates_text(const WorkerFates& workers) {
  std::string text = std::to_string(workers.finished) + " finished";
  if (workers.left > 0) text += fmt::format(", {} left", workers.left);
  if (workers.died > 0) text += fmt::format(", {} died", workers.died);
  return text;
}

std::string draws_text(const actor::Progress& last) {
  if (last.draws == 0) return {};
  return fmt::format("{}, of which {} let a worker pass", last.draws,
                     percent(static_cast<double>(last.passes) / static_cast<double>(last.draws)));
}

std::string reads_text(const core::ReadCounts& counts) {
  const double pulled = static_cast<double>(counts.pulled) / static_cast<double>(counts.ranges);
  return percent(1 - pulled) + " of the ranges from the cache";
}

/// Returns the sizes of the workers' last batches, if dynamic; their range if there are many.
std::string batches_text(const actor::Progress& last) {
  if (last.batches.size() <= 16) return fmt::format("{}", fmt::join(last.batches, ", "));
  const auto [min, max] = std::ranges::minmax(last.batches);
  return fmt::format("from {} to {} samples", min, max);
}

}  // namespace

std::uint64_t total_updates(const ResolvedJob& job, const actor::Progress& progress) {
  return job.updates_before + updates_made(job, progress);
}

std::string loaded_text(const TrainAndTest& data, std::chrono::nanoseconds took) {
  std::string text = describe(data.train);
  if (data.test) text += fmt::format("; {} to test on", data.test->size());
  return text + "; " + duration_text(in_seconds(took));
}

std::string progress_line(const ResolvedJob& job, const actor::Progress& progress,
                          const std::optional<std::string>& awaited_nodes) {
  const auto& spread = progress.spread;
  const bool learned = updates_made(job, progress) > 0;
  std::string text = fmt::format("{}  epoch {:.1f}", duration_text(in_seconds(progress.elapsed)),
                                 data_epoch(job, progress));
  if (learned) text += fmt::format("  {:.0f} updates/s", updates_per_second(job, progress));
  text += fmt::format("  steps {}-{}-{}", spread.min, spread.median, spread.max);
  if (learned)
    text +=
        fmt::format("  waiting {:.0f} %  loss {:.3g}", 100 * progress.waiting_share, progress.loss);
  if (is_tested(job, progress)) text += "  " + metric_text(progress.test.back());
  if (awaited_nodes && !awaited_nodes->empty()) text += "  waits for " + *awaited_nodes;
  if (const auto left = seconds_left(job, progress, awaited_nodes.has_value()))
    text += "  ETA " + duration_text(*left);
  return text;
}

std::string summary_table(const EndedJob& ended) {
  const ResolvedJob& job = ended.job;
  const auto& options = job.options;
  const actor::Progress& last = ended.outcome.last;
  std::string text = fmt::format("{} on {} ({})\n", job.model_name(), job.data, job.data_shape);
  text += report_row("job", job.name.empty() ? job.id : job.name);
  text += report_row("mode", members_text(job));
  const std::string recheck = recheck_text(options.job);
  text += report_row("barrier", barrier::print(options.job.barrier) +
                                    (recheck.empty() ? "" : ", recheck " + recheck));
  if (options.job.exchange != actor::JobOptions{}.exchange)
    text += report_row("exchange", options.job.exchange);
  text += report_row("delay", delay_text(options.job));
  text += report_row("straggler", fmt::format("{}", fmt::join(straggler_texts(options.job), ", ")));
  text += report_row("scale", job.scale);
  text += report_row("optimizer", optimizer_text(job));
  text += report_row("ended",
                     fmt::format("{}{} after {}{}", end_text(ended), early_stop_text(ended),
                                 duration_text(in_seconds(last.elapsed)), reached_text(ended)));
  const std::string before =
      job.updates_before > 0 ? fmt::format(", {} of them before", job.updates_before) : "";
  text += report_row("updates", fmt::format("{}{}, {:.0f}/s", total_updates(job, last), before,
                                            updates_per_second(job, last)));
  text += report_row("waiting", percent(last.waiting_share) + " of the workers' time");
  text += report_row("steps", spread_text(job, last));
  text += report_row("batches", batches_text(last));
  if (last.longest_gap)
    text += report_row("longest gap", duration_text(in_seconds(*last.longest_gap)));
  if (!job.id.empty()) text += report_row("workers", fates_text(ended.workers));
  text += report_row("draws", draws_text(last));
  text += report_row("tuned", barrier::print(last.tuned));
  if (options.job.cache && last.reads.ranges > 0)
    text += report_row("reads", reads_text(last.reads));
  text += report_row("evaluated", evaluations_text(ended));
  text += report_row("kept", kept_text(ended));
  text += report_row("train", metrics_text(train_metrics_of(ended)));
  text += report_row("test", metrics_text(test_metrics_of(ended)));
  if (ended.normalised_error)
    text += report_row("truth", fmt::format("normalised error {:.4g}", *ended.normalised_error));
  for (const std::string& line : ended.advice) text += report_row("note", line);
  text += report_row("saved", ended.saved);
  text += report_row("checkpoint", ended.checkpoint);
  text += report_row("report", ended.report);
  text += report_row("trace", ended.trace);
  return text;
}

std::string summary_json(const EndedJob& ended) { return json_line(summary(ended)); }

std::string progress_json(const ResolvedJob& job, const actor::Progress& progress) {
  Json json = event("progress", progress);
  json["step"] = whole_or_real(mean_step(job, progress));
  add_figures(json, job, progress);
  json.erase("wall_s");
  if (updates_made(job, progress) > 0)
    json["loss"] = progress.loss;
  else
    for (const char* unknown : {"updates_per_s", "waiting_share"}) json.erase(unknown);
  return json_line(json);
}

std::string evaluation_json(const ResolvedJob& job, const actor::Progress& progress) {
  Json json = event("evaluation", progress);
  json["step"] = whole_or_real(progress.evaluated_at);
  // An epoch has a different number of steps if workers hand in early, or if workers have changed.
  json["epoch"] = progress.evaluated_epoch.value_or(progress.evaluated_at /
                                                    static_cast<double>(job.steps_per_epoch));
  actor::Progress at_evaluation;
  at_evaluation.updates = progress.evaluated_updates.value_or(static_cast<std::uint64_t>(
      std::llround(progress.evaluated_at * static_cast<double>(job.options.job.workers))));
  json["updates"] = total_updates(job, at_evaluation);
  add_metrics(json, "test_", progress.test);
  return json_line(json);
}

std::string end_json(const EndedJob& ended) {
  Json json{{"event", "end"}};
  json.update(summary(ended));
  return json_line(json);
}

}  // namespace starling::program
