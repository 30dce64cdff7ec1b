#include "starling/engine/exchange/buckets.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::core {

std::vector<Bucket> make_buckets(const Layout& layout, std::size_t count) {
  STARLING_CHECK(count >= 1 && !layout.ranges.empty());
  std::vector<Bucket> buckets;
  auto end = static_cast<RangeId>(layout.ranges.size());
  // Each of the buckets that are left takes its share of the elements that are left, and leaves at
  // least one range to each of the others.
  for (std::size_t left = std::min(count, layout.ranges.size()); left > 0; --left) {
    const std::size_t elements = layout.ranges[end - 1].offset + layout.ranges[end - 1].count;
    RangeId first = end - 1;
    while (first >= left && elements - layout.ranges[first].offset < elements / left) --first;
    buckets.push_back({first, end});
    end = first;
  }
  return buckets;
}

std::size_t automatic_bucket_count(const Layout& layout, std::size_t element_bytes) {
  constexpr std::size_t count_max = 8;
  constexpr std::size_t bytes_min = std::size_t{1} << 20U;
  return std::clamp<std::size_t>(layout.size * element_bytes / bytes_min, 1, count_max);
}

}  // namespace starling::core
