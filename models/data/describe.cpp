#include "starling/models/data/describe.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace starling::models {
namespace {

/// Least, greatest, mean and non-zeros of the values added.
class Summary {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) {
      const auto wide = static_cast<double>(value);
      if (std::isnan(wide)) {
        ++missing_;
        continue;
      }
      least_ = count_ == 0 ? wide : std::min(least_, wide);
      most_ = count_ == 0 ? wide : std::max(most_, wide);
      sum_ += wide;
      nonzeros_ += wide != 0 ? 1 : 0;
      ++count_;
    }
  }
  [[nodiscard]] std::size_t missing() const { return missing_; }
  [[nodiscard]] double least() const { return least_; }
  [[nodiscard]] double most() const { return most_; }
  [[nodiscard]] double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  [[nodiscard]] std::size_t nonzeros() const { return nonzeros_; }

 private:
  double least_ = 0;
  double most_ = 0;
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
  d.value_min = values.least();
  d.value_max = values.most();
  d.value_mean = values.mean();
  d.label_min = labels.least();
  d.label_max = labels.most();
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
  std::vector<ColumnDescription> all;
  std::size_t at = 0;
  for (const Column& column : columns) {
    ColumnDescription one{.name = column.name};
    std::size_t known = 0;
    for (const std::string& category : column.categories) {
      one.categories.emplace_back(category, features[at++].nonzeros());
      known += one.categories.back().second;
    }
    if (column.is_category()) {
      one.missing = table.size() - known;
    } else {
      const Summary& numbers = features[at++];
      one.missing = numbers.missing();
      one.min = numbers.least();
      one.mean = numbers.mean();
      one.max = numbers.most();
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace starling::models
