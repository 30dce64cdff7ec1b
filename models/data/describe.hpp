/// Describes the content of a table in numbers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/table.hpp"

namespace starling::models {

struct Description {
  std::size_t rows = 0;
  std::size_t features = 0;
  bool sparse = false;
  /// Values held: rows x features for dense tables.
  std::size_t entries = 0;
  /// Share of the rows x features cells that are not zero.
  double density = 0;
  /// Least, greatest and mean of the values held; 0 where the table holds none.
  double value_min = 0;
  double value_max = 0;
  double value_mean = 0;
  /// Least, greatest and mean of the labels as the table holds them: class indices, or real
  /// targets.
  double label_min = 0;
  double label_max = 0;
  double label_mean = 0;
  /// Rows of each class; empty for real targets.
  std::vector<std::size_t> class_counts{};
  /// Bytes of memory of features and labels.
  std::size_t bytes = 0;
};

[[nodiscard]] Description describe(const Table& table);

/// Describes one column of the file that a table came from.
struct ColumnDescription {
  /// Empty where the file has no header.
  std::string name{};
  std::size_t missing = 0;
  /// Least, mean and greatest of the numbers that are not missing; 0 where all are.
  double min = 0;
  double mean = 0;
  double max = 0;
  /// Rows of each category; empty where the column holds numbers.
  std::vector<std::pair<std::string, std::size_t>> categories{};
};

/// Describes the columns that make features, or the features themselves where the table does not
/// record its columns. Empty for sparse tables.
[[nodiscard]] std::vector<ColumnDescription> describe_columns(const Table& table);

}  // namespace starling::models
