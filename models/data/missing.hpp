/// Numbers that are missing in a text file (missing=mean): a Table holds NaN in their place until
/// they are filled, with means of the training part alone.
#pragma once

#include <memory>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// The training data's encoding with the means of its columns; that of `train` itself where nothing
/// is to be filled. Refuses a column that holds no value at all.
[[nodiscard]] Result<std::shared_ptr<const Encoding>> fit_fills(const Table& train);

/// `table` with each missing number replaced by its column's mean. Requires: as many features as
/// `encoding` has, where that is not null.
[[nodiscard]] Table filled(Table table, std::shared_ptr<const Encoding> encoding);

}  // namespace starling::models
