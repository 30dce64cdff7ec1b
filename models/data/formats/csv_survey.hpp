/// Internal: the plan of a text file's columns: which of them hold categories, as the training data
/// or a survey of all rows says. One thread.
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

/// Returns how missing values are treated: as the source says, else as the training data was read.
[[nodiscard]] Missing policy_of(const CsvSource& source);

/// Rows that missing=drop leaves out.
class RowFilter {
 public:
  RowFilter(const CsvSource& source, const CsvColumns& columns)
      : drops_(policy_of(source) == Missing::drop), columns_(columns) {}

  [[nodiscard]] bool leaves_out(const CsvRows::Cells& cells) const {
    if (!drops_) return false;
    const auto lacks = [&](std::size_t column) { return is_missing(cells[column]); };
    return (columns_.label < cells.size() && lacks(columns_.label)) ||
           std::ranges::any_of(columns_.features, lacks);
  }

 private:
  bool drops_;
  const CsvColumns& columns_;
};

/// The columns of a file, and the names of its classes; numbers have none.
struct CsvPlan {
  std::shared_ptr<Encoding> encoding = std::make_shared<Encoding>();
  std::vector<std::string> classes{};
};

/// Plans all columns as numbers, except those that the training data decides.
[[nodiscard]] CsvPlan plan_of(const CsvSource& source, const CsvRows& rows,
                              const CsvColumns& columns);

/// Reads all rows of training data to find out which columns hold categories.
[[nodiscard]] Result<CsvPlan> survey(const CsvSource& source);

}  // namespace starling::models
