/// Advises people about a model that was just trained: whether it is better than guessing, whether
/// more steps would help, and what to try.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// The figures of a model that always predicts the same: the commonest class of the training data,
/// or its mean target.
struct Baseline {
  /// "accuracy" or "mse", over the test data.
  models::Metric figure;
  /// The mean loss of the training data's own distribution: its entropy, or half its variance.
  double loss = 0;
};

/// Returns nothing if the data are not tables or have no rows.
[[nodiscard]] std::optional<Baseline> baseline_of(const AnyData& train, const AnyData& test);

/// Pairs of step and test loss, in the order of the steps. A step is the mean of the workers.
using LossCurve = std::vector<std::pair<double, double>>;

/// Returns one sentence for each piece of advice. `test` holds the metrics at the end of the job.
[[nodiscard]] std::vector<std::string> find_advice(const PreparedRun& ready,
                                                   const models::Metrics& test,
                                                   const LossCurve& losses);

/// Returns a note on how a source's whole-number labels are read, as classes or as real targets,
/// and how to choose the other; empty if there is no choice.
[[nodiscard]] std::string label_reading_hint(const std::string& source, const AnyData& data);

/// Returns the same note only if labels that are read as classes look more like ratings.
[[nodiscard]] std::string rating_hint(const std::string& source, const AnyData& data);

}  // namespace starling::program
