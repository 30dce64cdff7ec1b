/// Internal: finds out which columns of a text file hold categories, from the training data or from
/// all rows. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/csv_rows.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Returns how missing values are handled: as the source says, else as for the training data.
[[nodiscard]] Missing missing_policy(const CsvSource& source);

/// Decides which rows missing=drop leaves out.
class RowFilter {
 public:
  RowFilter(const CsvSource& source, const CsvColumns& columns)
      : drops_missing_(missing_policy(source) == Missing::drop), columns_(columns) {}

  /// Returns whether to leave out the row: the label or a feature is missing.
  [[nodiscard]] bool drops(const CsvRows::Cells& cells) const {
    if (!drops_missing_) return false;
    const auto lacks_value = [&](std::size_t column) { return is_missing(cells[column]); };
    return (columns_.label < cells.size() && lacks_value(columns_.label)) ||
           std::ranges::any_of(columns_.features, lacks_value);
  }

 private:
  bool drops_missing_;
  const CsvColumns& columns_;
};

/// Says for each column of a file whether it holds numbers, or which categories.
struct CsvSchema {
  std::shared_ptr<Encoding> encoding = std::make_shared<Encoding>();
  /// The names of the classes; empty if the labels are numbers.
  std::vector<std::string> classes{};
};

/// Returns the schema of the training data; if `source` is the training data, one that takes every
/// column for numbers.
[[nodiscard]] CsvSchema default_schema(const CsvSource& source, const CsvRows& rows,
                                       const CsvColumns& columns);

/// Reads all rows of the training data and finds out which columns hold categories.
[[nodiscard]] Result<CsvSchema> infer_schema(const CsvSource& source);

}  // namespace starling::models
