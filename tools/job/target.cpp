#include "starling/tools/job/target.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Returns true if a lower value of the metric is better.
bool lower_is_better(std::string_view metric) {
  constexpr std::array<std::string_view, 5> falling{"loss", "mse", "rmse", "mae", "error"};
  return std::ranges::find(falling, metric) != falling.end();
}

/// Checks a target of any metric before the model is known. If a model computes the metric itself
/// (loss, mse, rmse, mae, error, accuracy), refuses a value that the metric cannot have, and a
/// target that would be reached by getting worse. Accepts all targets of other metrics.
Result<void> check_model_metric(std::string_view text, std::string_view metric, double value,
                                char sign) {
  const std::string name{metric};
  const Error worse{"'" + std::string{text} + "' would be reached by getting worse; valid: " +
                    name + (lower_is_better(metric) ? "<=" : ">=") + print_number(value)};
  if (lower_is_better(metric) && sign == '>') return worse;
  if (lower_is_better(metric) && name != "loss" && value < 0)
    return Error{"'" + std::string{text} + "' cannot be reached; valid: " + name + " of 0 or more"};
  if (name != "accuracy") return {};
  if (sign == '<') return worse;
  if (value >= 0 && value <= 1) return {};
  return Error{"'" + std::string{text} +
               "' asks for a value that accuracy cannot have; valid: accuracy from 0 to 1"};
}

/// An error lists metrics of single classes, such as recall:LABEL, only if there are at most this
/// many metrics in all.
constexpr std::size_t metrics_shown_max = 24;

/// For a metric that an evaluation computes, such as recall or r2: refuses a value that it cannot
/// have, and a target that would be reached by getting worse. Requires: the metric is one of
/// metric_names().
Result<void> check_evaluation_metric(const actor::Target& target) {
  const bool is_lower_better = lower_is_better(target.metric);
  const std::string text = "until: '" + print(target) + "'";
  if (target.at_least == is_lower_better)
    return Error{text + " would be reached by getting worse; valid: " + target.metric +
                 (is_lower_better ? "<=" : ">=") + print_number(target.value)};
  const bool is_r2 = target.metric == "r2";
  if (is_lower_better || (target.value <= 1 && (is_r2 || target.value >= 0))) return {};
  return Error{text + " asks for a value that the metric cannot have; valid: " + target.metric +
               (is_r2 ? " of 1 or less" : " from 0 to 1")};
}

}  // namespace

Result<actor::Target> parse_target(std::string_view text) {
  const Error bad{"'" + std::string{text} +
                  "' is not a goal; valid: accuracy=0.95, loss=0.1, accuracy>=0.95, mse<=2"};
  const auto equals = text.rfind('=');  // a label may contain '=', as in recall:<=50K=0.8
  if (equals == std::string_view::npos || equals == 0) return bad;
  const char before = text[equals - 1];
  const bool has_direction = before == '<' || before == '>';
  const auto metric = trim(text.substr(0, equals - (has_direction ? 1 : 0)));
  const auto value = parse_number(trim(text.substr(equals + 1)));
  if (metric.empty() || !value) return bad;
  if (auto reachable = check_model_metric(text, metric, *value, has_direction ? before : '=');
      !reachable)
    return std::move(reachable).error();
  return actor::Target{.metric = std::string{metric},
                       .value = *value,
                       .at_least = has_direction ? before == '>' : !lower_is_better(metric)};
}

std::string print(const actor::Target& target) {
  const std::string goal =
      target.metric + (target.at_least ? ">=" : "<=") + print_number(target.value);
  return goal.find(' ') == std::string::npos ? goal : "'" + goal + "'";
}

Result<void> check_target(const actor::Target& target, const models::Metrics& metrics,
                          const std::vector<std::string>& evaluation_metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric.name);
  if (std::ranges::find(names, target.metric) != names.end()) return {};
  if (std::ranges::find(evaluation_metrics, target.metric) != evaluation_metrics.end())
    return check_evaluation_metric(target);
  std::ranges::copy_if(evaluation_metrics, std::back_inserter(names), [&](const std::string& name) {
    return name.find(':') == std::string::npos || evaluation_metrics.size() <= metrics_shown_max;
  });
  return Error{"until: the model has no metric '" + target.metric + "' on this test data; " +
               suggest(target.metric, names)};
}

}  // namespace starling::program
