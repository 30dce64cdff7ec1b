/// Records how the columns of a text file became the features of a Table, so that later rows become
/// features in the same way. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace starling::models {

/// A column of a file. A column of numbers becomes one feature, a column of texts one feature for
/// each category.
struct Column {
  /// The column's name in the header; empty without a header.
  std::string name{};
  /// The different texts of the column, ascending; empty for a column of numbers. In each row the
  /// feature of the row's text is 1 and all others are 0 (one-hot). If the text is missing, all are
  /// 0.
  std::vector<std::string> categories{};
  /// The value that replaces a missing number: the mean of the training rows. Not used unless
  /// Encoding::fills.
  float fill = 0;

  [[nodiscard]] bool is_category() const noexcept { return !categories.empty(); }
  [[nodiscard]] std::size_t features() const noexcept {
    return is_category() ? categories.size() : 1;
  }
  bool operator==(const Column&) const = default;
};

/// How all columns of a file became features.
struct Encoding {
  /// The columns that make features, in the order of the features.
  std::vector<Column> columns{};
  /// The name of the column of labels; empty without a header or without labels.
  std::string label{};
  /// True if missing values are filled in (missing=mean); false if they are refused, or if their
  /// rows are left out.
  bool fills = false;

  [[nodiscard]] std::size_t features() const noexcept {
    std::size_t count = 0;
    for (const Column& column : columns) count += column.features();
    return count;
  }
  bool operator==(const Encoding&) const = default;
};

}  // namespace starling::models
