/// Buckets: runs of consecutive ranges. A model that computes its gradient layer by layer gives the
/// parts of a bucket once they are final, and the workers sum them while it computes the others
/// (Li et al., arXiv 2006.15704, section 3.2.3). Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::core {

/// The ranges from `first` to before `end`.
struct Bucket {
  RangeId first = 0;
  RangeId end = 0;

  [[nodiscard]] bool contains(RangeId range) const { return first <= range && range < end; }
  bool operator==(const Bucket&) const = default;
};

/// A job has at most this many buckets.
inline constexpr std::size_t buckets_max = 64;

/// Returns the bucket of all ranges.
[[nodiscard]] inline Bucket all_ranges(const Layout& layout) {
  return {0, static_cast<RangeId>(layout.ranges.size())};
}

/// Cuts the ranges into `count` buckets of about the same size, or into one for each range if there
/// are fewer ranges. The bucket of the last ranges is the first one, because a backward pass
/// computes the gradient of the last layer first. Requires: count >= 1, and the layout has a range.
[[nodiscard]] std::vector<Bucket> make_buckets(const Layout& layout, std::size_t count);

/// Returns the number of buckets of a job that names none: one for each MiB, at least 1 and at most
/// 8. With smaller buckets, the added messages take at least the time that the overlap saves.
[[nodiscard]] std::size_t automatic_bucket_count(const Layout& layout, std::size_t element_bytes);

}  // namespace starling::core
