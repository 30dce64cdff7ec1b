/// Records how the columns of a text file became the features of a Table, so that later rows become
/// features in the same way. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace starling::models {

/// A column of a file, which makes one feature if it holds numbers, or one for each of its
/// categories.
struct Column {
  /// The column's name in the header; empty without a header.
  std::string name{};
  /// Texts, ascending: a row's feature is 1 for its own text and 0 for all others (one-hot). A row
  /// whose text is missing has only zeros. Empty where the column holds numbers.
  std::vector<std::string> categories{};
  /// The value of a missing number: the mean of the training rows. Meaningless unless
  /// Encoding::fills.
  float fill = 0;

  [[nodiscard]] bool is_category() const noexcept { return !categories.empty(); }
  [[nodiscard]] std::size_t features() const noexcept {
    return is_category() ? categories.size() : 1;
  }
  bool operator==(const Column&) const = default;
};

struct Encoding {
  /// The columns that make features, in the order of the features.
  std::vector<Column> columns{};
  /// The name of the column of labels; empty where there is no header or there are no labels.
  std::string label{};
  /// Whether missing values are filled; else they are refused.
  bool fills = false;

  [[nodiscard]] std::size_t features() const noexcept {
    std::size_t count = 0;
    for (const Column& column : columns) count += column.features();
    return count;
  }
  bool operator==(const Encoding&) const = default;
};

}  // namespace starling::models
