/// Summarises the content of a table: counts, extremes and means.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/table.hpp"

namespace starling::models {

/// The content of a whole table.
struct Description {
  std::size_t rows = 0;
  std::size_t features = 0;
  bool sparse = false;
  /// Stored values: rows x features for dense tables.
  std::size_t entries = 0;
  /// Share of the rows x features cells that are not zero.
  double density = 0;
  /// Smallest, largest and mean stored value; 0 if the table stores none.
  double value_min = 0;
  double value_max = 0;
  double value_mean = 0;
  /// Smallest, largest and mean label. The labels are class indices or real targets.
  double label_min = 0;
  double label_max = 0;
  double label_mean = 0;
  /// The number of rows of each class; empty for real targets.
  std::vector<std::size_t> class_counts{};
  /// Bytes of memory that features and labels take.
  std::size_t bytes = 0;
};

[[nodiscard]] Description describe(const Table& table);

/// Describes one column of the file that a table came from.
struct ColumnDescription {
  /// The name in the file's header; empty if the file has none.
  std::string name{};
  /// The number of rows whose value is missing.
  std::size_t missing = 0;
  /// Smallest, mean and largest number; 0 if all are missing.
  double min = 0;
  double mean = 0;
  double max = 0;
  /// Each category and its number of rows; empty if the column holds numbers.
  std::vector<std::pair<std::string, std::size_t>> categories{};
};

/// Describes the columns that make features, as the table's Encoding records them, or the features
/// themselves if the table has no Encoding. Returns an empty vector for sparse tables.
[[nodiscard]] std::vector<ColumnDescription> describe_columns(const Table& table);

}  // namespace starling::models
