/// Which rows of one data set are trained on and which are tested on: `--split` and `--holdout`.
/// Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// Every row is in one of the two lists; both ascend.
struct SplitRows {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
};

/// The share of rows that is held out by default.
inline constexpr double holdout_default = 0.2;

/// The first `rows` of `size` rows train, the rest test. Refuses to leave either without a row.
Result<SplitRows> split_first(std::uint64_t size, std::uint64_t rows);

/// round(share * size) rows drawn by `seed` test, the others train. Refuses to leave either without
/// a row.
Result<SplitRows> hold_out(std::uint64_t size, double share, std::uint64_t seed);

}  // namespace starling::models
