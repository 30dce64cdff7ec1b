/// Sorts the places of a buffer's records. Thread-safe.
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
using Place = std::pair<std::uint64_t, std::uint32_t>;

/// Sorts places in the order `less`. Requires: a place with a lower rank is less. First divides the
/// places into at most 4,096 buckets by their ranks, of about eight places each if the ranks are
/// spread evenly, as those of hashes are; so few places are compared. Takes as much memory again as
/// the places.
template <class Less>
void sort_places(std::vector<Place>& places, const Less& less) {
  constexpr std::size_t bucket_places = 8;
  constexpr std::size_t buckets_max = 4096;
  const std::size_t buckets =
      std::bit_floor(std::min(places.size() / bucket_places, buckets_max - 1) + 1);
  if (buckets < 2) {
    std::ranges::sort(places, less);
    return;
  }
  const auto [least, most] = std::ranges::minmax(places, {}, &Place::first);
  const std::uint64_t base = least.first;
  // The highest rank is in the last bucket or before it.
  const auto rank_bits = static_cast<int>(std::bit_width(most.first - base));
  const int shift = std::max(0, rank_bits - std::countr_zero(buckets));
  const auto bucket_of = [base, shift](const Place& place) {
    return static_cast<std::size_t>((place.first - base) >> shift);
  };
  // Where each bucket begins, and then where it ends.
  std::vector<std::uint32_t> ends(buckets);
  for (const Place& place : places) ++ends[bucket_of(place)];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : ends) end = std::exchange(begin, begin + end);
  std::vector<Place> divided(places.size());
  for (const Place& place : places) divided[ends[bucket_of(place)]++] = place;
  begin = 0;
  for (const std::uint32_t end : ends) {
    std::ranges::sort(std::span{divided}.subspan(begin, end - begin), less);
    begin = end;
  }
  places = std::move(divided);
}

}  // namespace starling::flow
