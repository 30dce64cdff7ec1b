/// Advises people about a model that was just trained: whether it is better than guessing, whether
/// more steps would help, and what to try.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/model.hpp"
#include "starling/tools/registry/any_data.hpp"

namespace starling::program {

struct RecordedRun;

/// The figures of a model that makes the same prediction for every sample: the commonest class of
/// the training data, or its mean target.
struct Baseline {
  /// "accuracy" or "mse", over the test data.
  models::Metric figure;
  /// The mean loss on the training data of the best constant prediction: the entropy of its
  /// classes, or half the variance of its targets.
  double loss = 0;
};

/// Computes the baseline of `train` and its figure on `test`. Returns nothing if one of them is not
/// a table or has no rows.
[[nodiscard]] std::optional<Baseline> baseline_of(const AnyData& train, const AnyData& test);

/// The part of a job's data that advice depends on.
struct DataAdvice {
  /// The figures to beat; absent if the data are not tables, or if there are no test data.
  std::optional<Baseline> baseline = std::nullopt;
  /// The result of odd_labels_hint().
  std::string labels_hint = {};
};

/// Pairs of the workers' mean step and the test loss, in the order of the steps.
using LossCurve = std::vector<std::pair<double, double>>;

/// Returns one sentence for each piece of advice. `test` holds the metrics at the end of the job.
[[nodiscard]] std::vector<std::string> find_advice(const RecordedRun& run,
                                                   const models::Metrics& test,
                                                   const LossCurve& losses);

/// Returns a note on how a source's whole-number labels are read, as classes or as real targets,
/// and how to choose the other; empty if there is no choice.
[[nodiscard]] std::string label_reading_hint(const std::string& source, const AnyData& data);

/// Returns the note of label_reading_hint() if the labels are read as classes but look more like
/// ratings, or as real targets but have as few values as classes; else an empty text.
[[nodiscard]] std::string odd_labels_hint(const std::string& source, const AnyData& data);

}  // namespace starling::program
