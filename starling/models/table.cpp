#include "starling/models/table.hpp"

namespace starling::models {

Table Table::select(std::span<const std::uint32_t> rows) const {
  std::vector<float> labels;
  labels.reserve(rows.size());
  for (const std::uint32_t row : rows) labels.push_back(labels_[row]);
  Table chosen;
  if (is_sparse_) {
    Sparse x;
    for (const std::uint32_t row : rows) {
      const auto [columns, values] = sparse_row(row);
      x.columns.insert(x.columns.end(), columns.begin(), columns.end());
      x.values.insert(x.values.end(), values.begin(), values.end());
      x.starts.push_back(x.columns.size());
    }
    x.columns.shrink_to_fit();
    x.values.shrink_to_fit();
    chosen = Table{features_, classes_, std::move(x), std::move(labels)};
  } else {
    Dense x;
    x.values.reserve(rows.size() * features_);
    for (const std::uint32_t row : rows) {
      const auto values = dense_row(row);
      x.values.insert(x.values.end(), values.begin(), values.end());
    }
    chosen = Table{features_, classes_, std::move(x), std::move(labels)};
  }
  chosen.truth = truth;
  chosen.labelling = labelling;
  return chosen;
}

}  // namespace starling::models
