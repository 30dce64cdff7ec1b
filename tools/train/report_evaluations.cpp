#include "starling/tools/train/report_evaluations.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Why evaluations were left out, each with its key in the summary.
struct LeftOut {
  std::uint64_t count;
  const char* key;
  const char* why;
};
std::vector<LeftOut> left_out_of(const actor::EvaluationCounts& counts) {
  std::vector<LeftOut> all{
      {counts.outrun, "outrun", "as the next was due when the workers were seen to be there"},
      {counts.crowded, "crowded", "as earlier ones were still being made"},
      {counts.missing, "missing", "as the model could not be had"},
      {counts.ended, "ended", "as the job was ended before"}};
  std::erase_if(all, [](const LeftOut& some) { return some.count == 0; });
  return all;
}

bool counts_evaluations(const Ended& ended) {
  return ended.job.test_samples > 0 && ended.job.options.job.evaluate_every > 0 &&
         ended.outcome.last.counts.due > 0;
}

void add_evaluations(Json& json, const Ended& ended) {
  if (!counts_evaluations(ended)) return;
  const actor::EvaluationCounts& counts = ended.outcome.last.counts;
  json["eval_every"] = ended.job.options.job.evaluate_every;
  json["evaluations"] = ended.outcome.last.evaluations;
  json["evaluations_due"] = counts.due;
  for (const LeftOut& some : left_out_of(counts))
    json["evaluations_left_out"][some.key] = some.count;
}

void add_kept(Json& json, const Ended& ended) {
  if (ended.patience > 0) json["patience"] = ended.patience;
  if (ended.best && counts_evaluations(ended)) {
    json["best_step"] = whole_or_real(ended.best->first);
    json["best_test_loss"] = ended.best->second;
  }
  if (!ended.has_model || ended.kept.step == 0) return;
  json["kept"] = print(ended.kept.which);
  json["kept_step"] = whole_or_real(ended.kept.step);
}

}  // namespace

nlohmann::ordered_json whole_or_real(double value) {
  if (value == std::floor(value)) return static_cast<std::uint64_t>(value);
  return value;
}

nlohmann::ordered_json evaluations_json(const Ended& ended) {
  Json json = Json::object();
  add_evaluations(json, ended);
  add_kept(json, ended);
  return json;
}

std::string early_text(const Ended& ended) {
  if (ended.patience == 0) return {};
  const std::string best =
      ended.best ? fmt::format(", best at step {}", print_number(ended.best->first)) : "";
  return fmt::format(": no better test loss for {}{},", counted(ended.patience, "evaluation"),
                     best);
}

std::string evaluations_text(const Ended& ended) {
  if (!counts_evaluations(ended)) return {};
  const actor::EvaluationCounts& counts = ended.outcome.last.counts;
  std::string text =
      fmt::format("{} of {}, one every {} and one at the end", ended.outcome.last.evaluations,
                  counts.due, counted(ended.job.options.job.evaluate_every, "step"));
  for (const LeftOut& some : left_out_of(counts))
    text += fmt::format("; {} left out {}", some.count, some.why);
  return text;
}

std::string kept_text(const Ended& ended) {
  if (!ended.has_model || ended.kept.which != Keep::best) return {};
  return fmt::format("the best model, of step {}, chosen by its loss on the test data",
                     print_number(ended.kept.step));
}

}  // namespace starling::program
