/// Small random tables for the tests of the models.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Draws labels: class indices, or real targets with a normal distribution if `classes` is 0.
inline std::vector<float> draw_labels(std::size_t rows, std::size_t classes, Random& random) {
  std::vector<float> labels(rows);
  for (float& label : labels)
    label = static_cast<float>(classes > 0 ? static_cast<double>(random.below(classes))
                                           : random.normal());
  return labels;
}

/// Returns a dense table of normal features, with labels as draw_labels() draws them.
inline Table dense_table(std::size_t rows, std::size_t features, std::size_t classes,
                         std::uint64_t seed = 1) {
  Random random{seed};
  Table::Dense x;
  for (std::size_t i = 0; i < rows * features; ++i)
    x.values.push_back(static_cast<float>(random.normal()));
  return {features, classes, std::move(x), draw_labels(rows, classes, random)};
}

/// Returns the same as a sparse table that stores about a third of the entries; row 0 is empty.
inline Table sparse_table(std::size_t rows, std::size_t features, std::size_t classes,
                          std::uint64_t seed = 1) {
  Random random{seed};
  Table::Sparse x;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::uint32_t j = 0; i > 0 && j < features; ++j) {
      if (random.below(3) > 0) continue;
      x.columns.push_back(j);
      x.values.push_back(static_cast<float>(random.normal()));
    }
    x.starts.push_back(x.columns.size());
  }
  return {features, classes, std::move(x), draw_labels(rows, classes, random)};
}

/// Returns a table of random ratings: the features are a user id and an item id, the labels normal.
inline Table ratings_table(std::size_t rows, std::size_t users, std::size_t items) {
  Random random{3};
  Table::Dense x;
  for (std::size_t i = 0; i < rows; ++i) {
    x.values.push_back(static_cast<float>(random.below(users)));
    x.values.push_back(static_cast<float>(random.below(items)));
  }
  return {2, 0, std::move(x), draw_labels(rows, 0, random)};
}

/// Returns the indices of all rows, in order.
inline std::vector<std::uint32_t> all_rows(const Table& table) {
  std::vector<std::uint32_t> rows(table.size());
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

}  // namespace starling::models
