/// Fills in the numbers that are missing in a text file (missing=mean). load() puts NaN into the
/// Table for each missing number; filled() replaces it by its column's mean in the training data.
#pragma once

#include <memory>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Returns the encoding of `train` with the mean of each column of numbers as its Column::fill;
/// unchanged if the data were read without missing=mean. Refuses a column without any value.
[[nodiscard]] Result<std::shared_ptr<const Encoding>> fit_fill_values(const Table& train);

/// Returns `table` with `encoding`, and with each missing number replaced by its Column::fill.
/// Replaces nothing if `encoding` is null or was made without missing=mean, or if the table is
/// sparse. Requires: in all other cases `encoding` has as many features as the table.
[[nodiscard]] Table filled(Table table, std::shared_ptr<const Encoding> encoding);

}  // namespace starling::models
