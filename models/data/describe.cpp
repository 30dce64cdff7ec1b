#include "starling/models/data/describe.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace starling::models {
namespace {

/// Computes statistics of the values that add() gets. NaN counts as a missing value.
class Summary {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) {
      const auto number = static_cast<double>(value);
      if (std::isnan(number)) {
        ++missing_;
        continue;
      }
      smallest_ = count_ == 0 ? number : std::min(smallest_, number);
      largest_ = count_ == 0 ? number : std::max(largest_, number);
      sum_ += number;
      nonzeros_ += number != 0 ? 1 : 0;
      ++count_;
    }
  }
  [[nodiscard]] std::size_t missing() const { return missing_; }
  [[nodiscard]] double smallest() const { return smallest_; }
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  [[nodiscard]] std::size_t nonzeros() const { return nonzeros_; }

 private:
  double smallest_ = 0;
  double largest_ = 0;
  double sum_ = 0;
  std::size_t nonzeros_ = 0;
  std::size_t count_ = 0;
  std::size_t missing_ = 0;
};

}  // namespace

Description describe(const Table& table) {
  Summary values;
  Summary labels;
  Description d{.rows = table.size(), .features = table.features(), .sparse = table.is_sparse()};
  d.class_counts.resize(table.classes());
  for (std::size_t row = 0; row < table.size(); ++row) {
    const float label = table.label(row);
    values.add(table.is_sparse() ? table.sparse_row(row).values : table.dense_row(row));
    labels.add({&label, 1});
    if (table.classes() > 0) ++d.class_counts[static_cast<std::size_t>(label)];
  }
  d.entries = table.entries();
  const double cells = static_cast<double>(d.rows) * static_cast<double>(d.features);
  d.density = cells > 0 ? static_cast<double>(values.nonzeros()) / cells : 0;
  d.value_min = values.smallest();
  d.value_max = values.largest();
  d.value_mean = values.mean();
  d.label_min = labels.smallest();
  d.label_max = labels.largest();
  d.label_mean = labels.mean();
  d.bytes = table.bytes();
  return d;
}

std::vector<ColumnDescription> describe_columns(const Table& table) {
  if (table.is_sparse()) return {};
  std::vector<Summary> features(table.features());
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto values = table.dense_row(row);
    for (std::size_t i = 0; i < values.size(); ++i) features[i].add(values.subspan(i, 1));
  }
  const std::vector<Column> columns =
      table.encoding ? table.encoding->columns : std::vector<Column>(table.features());
  std::vector<ColumnDescription> descriptions;
  std::size_t feature = 0;
  for (const Column& column : columns) {
    ColumnDescription description{.name = column.name};
    std::size_t rows_with_category = 0;
    for (const std::string& category : column.categories) {
      description.categories.emplace_back(category, features[feature++].nonzeros());
      rows_with_category += description.categories.back().second;
    }
    if (column.is_category()) {
      description.missing = table.size() - rows_with_category;
    } else {
      const Summary& numbers = features[feature++];
      description.missing = numbers.missing();
      description.min = numbers.smallest();
      description.mean = numbers.mean();
      description.max = numbers.largest();
    }
    descriptions.push_back(std::move(description));
  }
  return descriptions;
}

}  // namespace starling::models
