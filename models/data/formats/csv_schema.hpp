/// Internal: decides which columns of a text file hold numbers and which hold categories. For test
/// data the training data decide it, for training data all rows of the file. Not thread-safe.
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

/// Returns how missing values are handled: as the source says; else by Missing::mean if the
/// training data were read with it, else by Missing::refuse.
[[nodiscard]] Missing missing_policy(const CsvSource& source);

/// Decides which rows are left out because of missing=drop.
class RowFilter {
 public:
  /// `columns` must outlive the filter.
  RowFilter(const CsvSource& source, const CsvColumns& columns)
      : drops_missing_(missing_policy(source) == Missing::drop), columns_(columns) {}

  /// Returns whether to leave out the row, because its label or a feature is missing.
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

/// The interpretation of a file's columns.
struct CsvSchema {
  /// The columns of features, each with its categories or none if it holds numbers. Never null.
  std::shared_ptr<Encoding> encoding = std::make_shared<Encoding>();
  /// The names of the classes; empty if the labels are numbers.
  std::vector<std::string> classes{};
};

/// Returns the schema of the training data. If `source` itself is the training data, returns a
/// schema in which every column holds numbers.
[[nodiscard]] CsvSchema default_schema(const CsvSource& source, const CsvRows& rows,
                                       const CsvColumns& columns);

/// Reads all rows of `source`, the training data, and finds the columns that hold categories.
[[nodiscard]] Result<CsvSchema> infer_schema(const CsvSource& source);

}  // namespace starling::models
