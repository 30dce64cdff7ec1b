#include "starling/models/data/split.hpp"

#include <cmath>
#include <string>

#include "starling/base/permutation.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// The number of the random stream that chooses the test rows.
constexpr std::uint64_t holdout_stream = 0x686f6c64;  // "hold" in ASCII

/// Puts row i into `test` if is_test[i], else into `train`.
SplitRows split(const std::vector<bool>& is_test) {
  SplitRows rows;
  for (std::size_t i = 0; i < is_test.size(); ++i)
    (is_test[i] ? rows.test : rows.train).push_back(static_cast<std::uint32_t>(i));
  return rows;
}

}  // namespace

Result<SplitRows> split_first(std::uint64_t size, std::uint64_t train_rows) {
  if (train_rows == 0 || train_rows >= size)
    return Error{"--split " + std::to_string(train_rows) + " of " + std::to_string(size) +
                 " rows leaves nothing to " + (train_rows == 0 ? "train" : "test") +
                 " on; valid: " +
                 (size < 2 ? "data of 2 rows or more" : "1 to " + std::to_string(size - 1))};
  std::vector<bool> is_test(size, false);
  for (std::size_t i = train_rows; i < is_test.size(); ++i) is_test[i] = true;
  return split(is_test);
}

Result<SplitRows> hold_out(std::uint64_t size, double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1))
    return Error{"--holdout " + print_number(share) +
                 " is not a share; valid: numbers between 0 and 1, both excluded"};
  const auto count = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(size)));
  if (count == 0 || count >= size)
    return Error{"--holdout " + print_number(share) + " of " + std::to_string(size) +
                 " rows leaves nothing to " + (count == 0 ? "test" : "train") +
                 " on; valid: " + (size < 2 ? "data of 2 rows or more" : "0.5, or --test SOURCE")};
  const Permutation order{size, Random::stream(seed, holdout_stream)()};
  std::vector<bool> is_test(size, false);
  for (std::uint64_t i = 0; i < count; ++i) is_test[order(i)] = true;
  return split(is_test);
}

}  // namespace starling::models
