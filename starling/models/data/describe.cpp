#include "starling/models/data/describe.hpp"

#include <algorithm>
#include <span>

namespace starling::models {
namespace {

/// Least, greatest, mean and non-zeros of the values added.
class Summary {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) {
      const auto wide = static_cast<double>(value);
      least_ = count_ == 0 ? wide : std::min(least_, wide);
      most_ = count_ == 0 ? wide : std::max(most_, wide);
      sum_ += wide;
      nonzeros_ += wide != 0 ? 1 : 0;
      ++count_;
    }
  }
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

}  // namespace starling::models
