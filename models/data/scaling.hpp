/// Brings features, and the targets of a regression, to one size before a model sees them, so that
/// one learning rate suits all: x' = (x - shift) / divisor, from the training data alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

enum class Scale {
  none,
  /// Mean 0 and standard deviation 1.
  standard,
  /// From 0 to 1.
  minmax,
};

[[nodiscard]] Result<Scale> parse_scale(const std::string& text);
[[nodiscard]] std::string print(Scale scale);

/// Returns how `how` scales data like `train`. Sparse features are only divided, by their standard
/// deviation or by their greatest absolute value, so that zeros stay zeros. A feature that is the
/// same in all rows is only shifted. The result is empty for Scale::none.
[[nodiscard]] Scaling fit(Scale how, const Table& train);

/// Returns the scaling of the labels; where they are classes, Labelling's own shift and divisor.
[[nodiscard]] Labelling fit_targets(Scale how, const Table& train);

/// `table` with its features scaled, and its targets too where `labelling` has real ones. Requires:
/// the table's features are not scaled yet, and as many as `scaling` has, where it has any.
[[nodiscard]] Table scaled(const Table& table, const Scaling& scaling, const Labelling& labelling);

}  // namespace starling::models
