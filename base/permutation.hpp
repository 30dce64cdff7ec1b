/// A pseudo-random permutation of [0, size) that takes no memory. With it any worker can compute
/// the i-th sample of a data epoch without storing the order of all samples.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"

namespace starling {

/// A balanced Feistel network of ten rounds, which permutes [0, 4^k), the smallest such range that
/// contains [0, size). The network is applied again until the result is below `size` (cycle
/// walking: Black, Rogaway, CT-RSA 2002), at most 4 times on average.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size) {
    const auto bits = size < 2 ? 1U : static_cast<unsigned>(std::bit_width(size - 1));
    half_bits_ = (bits + 1) / 2;
    Random random{key};
    for (auto& round : keys_) round = random();
  }

  /// Returns the number at position `i`. Requires: i < size.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t i) const noexcept {
    STARLING_CHECK(i < size_);
    do i = encrypt(i);
    while (i >= size_);
    return i;
  }

 private:
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t x) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t size_;
  unsigned half_bits_;
  std::array<std::uint64_t, 10> keys_{};
};

}  // namespace starling
