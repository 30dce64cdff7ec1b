#include "starling/tools/train/report_evaluations.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The number of evaluations that were skipped for one reason.
struct SkippedEvaluations {
  std::uint64_t count;
  /// The reason as a key of the JSON summary, and in words.
  const char* key;
  const char* why;
};
/// Returns the skipped evaluations by reason, without reasons for which there are none.
std::vector<SkippedEvaluations> skipped_evaluations(const actor::EvaluationCounts& counts) {
  std::vector<SkippedEvaluations> skipped_by_reason{
      {counts.outrun, "outrun", "because the workers had already reached the step of the next one"},
      {counts.crowded, "crowded", "because earlier ones were still running"},
      {counts.missing, "missing", "because the model could not be read or evaluated"},
      {counts.ended, "ended", "because the job had ended"}};
  std::erase_if(skipped_by_reason,
                [](const SkippedEvaluations& skipped) { return skipped.count == 0; });
  return skipped_by_reason;
}

bool has_evaluations(const EndedJob& ended) {
  return ended.job.test_samples > 0 && ended.job.options.job.evaluate_every > 0 &&
         ended.outcome.last.counts.due > 0;
}

void add_evaluations(Json& json, const EndedJob& ended) {
  if (!has_evaluations(ended)) return;
  const actor::EvaluationCounts& counts = ended.outcome.last.counts;
  json["eval_every"] = ended.job.options.job.evaluate_every;
  json["evaluations"] = ended.outcome.last.evaluations;
  json["evaluations_due"] = counts.due;
  for (const SkippedEvaluations& skipped : skipped_evaluations(counts))
    json["evaluations_left_out"][skipped.key] = skipped.count;
}

/// Adds how the job chose the model that it keeps, and which model that is.
void add_model_choice(Json& json, const EndedJob& ended) {
  if (ended.patience > 0) json["patience"] = ended.patience;
  if (ended.best && has_evaluations(ended)) {
    json["best_step"] = whole_or_real(ended.best->first);
    json["best_test_loss"] = ended.best->second;
  }
  if (!ended.has_model || ended.kept.step == 0) return;
  json["kept"] = print(ended.kept.which);
  json["kept_step"] = whole_or_real(ended.kept.step);
}

/// Prints a mean of the workers' steps, with at most one decimal.
std::string step_text(double step) { return print_number(std::round(10 * step) / 10); }

}  // namespace

const models::Metrics& train_metrics_of(const EndedJob& ended) {
  return ended.kept.which == Keep::best ? ended.kept.train : ended.outcome.last.train;
}
const models::Metrics& test_metrics_of(const EndedJob& ended) {
  return ended.kept.which == Keep::best ? ended.kept.test : ended.outcome.last.test;
}

nlohmann::ordered_json whole_or_real(double value) {
  if (value == std::floor(value)) return static_cast<std::uint64_t>(value);
  return value;
}

nlohmann::ordered_json evaluations_json(const EndedJob& ended) {
  Json json = Json::object();
  add_evaluations(json, ended);
  add_model_choice(json, ended);
  return json;
}

std::string early_stop_text(const EndedJob& ended) {
  if (ended.patience == 0) return {};
  const std::string best =
      ended.best ? fmt::format(", best at step {}", step_text(ended.best->first)) : "";
  return fmt::format(": no better test loss for {}{},", print_count(ended.patience, "evaluation"),
                     best);
}

std::string evaluations_text(const EndedJob& ended) {
  if (!has_evaluations(ended)) return {};
  const actor::EvaluationCounts& counts = ended.outcome.last.counts;
  std::string text =
      fmt::format("{} of {}, one every {} and one at the end", ended.outcome.last.evaluations,
                  counts.due, print_count(ended.job.options.job.evaluate_every, "step"));
  for (const SkippedEvaluations& skipped : skipped_evaluations(counts))
    text += fmt::format("; {} left out {}", skipped.count, skipped.why);
  return text;
}

std::string kept_text(const EndedJob& ended) {
  if (!ended.has_model || ended.kept.which != Keep::best) return {};
  return fmt::format("the best model, of step {}, chosen by its loss on the test data",
                     step_text(ended.kept.step));
}

}  // namespace starling::program
