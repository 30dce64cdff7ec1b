/// Sorts the positions of a buffer's records by their ranks. Thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace starling::flow {

/// The rank of a record (order.hpp), and its position in the order of arrival.
using RankedPosition = std::pair<std::uint64_t, std::uint32_t>;

/// Sorts positions in the order `less`. Requires: a position with a lower rank is less. First
/// divides the positions into at most 4,096 buckets by their ranks, of about eight positions each
/// if the ranks are spread evenly, as those of hashes are; so few positions are compared. Takes as
/// much memory again as the positions.
template <class Less>
void sort_positions(std::vector<RankedPosition>& positions, const Less& less) {
  constexpr std::size_t bucket_positions = 8;
  constexpr std::size_t buckets_max = 4096;
  const std::size_t buckets =
      std::bit_floor(std::min(positions.size() / bucket_positions, buckets_max - 1) + 1);
  if (buckets < 2) {
    std::ranges::sort(positions, less);
    return;
  }
  const auto [least, most] = std::ranges::minmax(positions, {}, &RankedPosition::first);
  const std::uint64_t base = least.first;
  // The highest rank is in the last bucket or before it.
  const auto rank_bits = static_cast<int>(std::bit_width(most.first - base));
  const int shift = std::max(0, rank_bits - std::countr_zero(buckets));
  const auto bucket_of = [base, shift](const RankedPosition& position) {
    return static_cast<std::size_t>((position.first - base) >> shift);
  };
  // Where each bucket begins, and then where it ends.
  std::vector<std::uint32_t> ends(buckets);
  for (const RankedPosition& position : positions) ++ends[bucket_of(position)];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : ends) end = std::exchange(begin, begin + end);
  std::vector<RankedPosition> divided(positions.size());
  for (const RankedPosition& position : positions) divided[ends[bucket_of(position)]++] = position;
  begin = 0;
  for (const std::uint32_t end : ends) {
    std::ranges::sort(std::span{divided}.subspan(begin, end - begin), less);
    begin = end;
  }
  positions = std::move(divided);
}

}  // namespace starling::flow
