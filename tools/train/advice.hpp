/// Notes for people about a model that was just trained: that it is no better than guessing,
/// that it would have gone on learning, and what to try.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// The figures of one constant answer: the training data's commonest class, or its mean target.
struct Baseline {
  /// "accuracy" or "mse", over the test data.
  models::Metric figure;
  /// The mean loss of the training data's own distribution: its entropy, or half its variance.
  double loss = 0;
};

/// Nothing where the data are no tables, or hold no rows.
[[nodiscard]] std::optional<Baseline> baseline_of(const AnyData& train, const AnyData& test);

/// The test loss by steps of one worker, ascending.
using LossCurve = std::vector<std::pair<double, double>>;

/// One sentence each; empty where all is well, or nothing is known.
[[nodiscard]] std::vector<std::string> advice(const Prepared& ready, const models::Metrics& test,
                                              const LossCurve& losses);

/// Says how a source's labels are read where they may be meant otherwise: whole numbers are
/// classes, and may be real targets. Empty where there is no choice.
[[nodiscard]] std::string other_reading(const std::string& source, const AnyData& data);

/// The same where whole numbers look more like ratings than like classes.
[[nodiscard]] std::string doubt_of_classes(const std::string& source, const AnyData& data);

}  // namespace starling::program
