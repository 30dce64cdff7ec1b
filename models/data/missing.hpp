/// Fills in the numbers that are missing in a text file (missing=mean). A Table holds NaN for each
/// of them until it is replaced by the mean of its column in the training data.
#pragma once

#include <memory>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Returns the training data's encoding with the mean of each column added; unchanged if the source
/// does not say missing=mean. Refuses a column that holds no value at all.
[[nodiscard]] Result<std::shared_ptr<const Encoding>> fit_fill_values(const Table& train);

/// Returns `table` with each missing number replaced by its column's mean, which `encoding` holds.
/// Requires: `encoding` is null, or has as many features as the table.
[[nodiscard]] Table filled(Table table, std::shared_ptr<const Encoding> encoding);

}  // namespace starling::models
