/// Splits the rows of one data set into training rows and test rows, for the flags `--split` and
/// `--holdout`. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// Row indices; every row is in one of the two lists, and both ascend.
struct SplitRows {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
};

/// The default share of the rows that become test rows.
inline constexpr double holdout_default = 0.2;

/// Puts the first `train_rows` of `size` rows into `train`, the others into `test`. Refuses numbers
/// with which one of the two would be empty.
Result<SplitRows> split_first(std::uint64_t size, std::uint64_t train_rows);

/// Puts round(share * size) rows, drawn at random with `seed`, into `test`, the others into
/// `train`. Refuses numbers with which one of the two would be empty.
Result<SplitRows> hold_out(std::uint64_t size, double share, std::uint64_t seed);

}  // namespace starling::models
