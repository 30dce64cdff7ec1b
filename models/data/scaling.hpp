/// Scales features, and the targets of a regression, to similar ranges before training, so that one
/// learning rate suits all: x' = (x - shift) / divisor. The training data alone decide shift and
/// divisor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// The scaling methods, as they scale dense features; see fit() for sparse ones.
enum class Scale {
  none,
  /// Mean 0 and standard deviation 1.
  standard,
  /// From 0 to 1.
  minmax,
};

[[nodiscard]] Result<Scale> parse_scale(const std::string& text);
[[nodiscard]] std::string print(Scale method);

/// Returns the shift and divisor of each feature of `train` for the method `method`; empty for
/// Scale::none. Sparse features are only divided, by their standard deviation or by their largest
/// absolute value, so that zeros stay zeros. A dense feature that is the same in all rows is
/// only shifted.
[[nodiscard]] Scaling fit(Scale method, const Table& train);

/// Returns the labelling of `train` with the shift and divisor for its real targets by the method
/// `method`; unchanged if the labels are classes.
[[nodiscard]] Labelling fit_targets(Scale method, const Table& train);

/// Returns `table` with its features scaled by `scaling`, and real targets by `labelling`. A scaled
/// value that no float holds is infinite.
/// Requires: the table is not scaled yet; `scaling` is empty or has at least as many features as
/// the table.
[[nodiscard]] Table scaled(const Table& table, const Scaling& scaling, const Labelling& labelling);

}  // namespace starling::models
