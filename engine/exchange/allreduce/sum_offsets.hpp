/// The offsets of the parts of the vector that workers sum (round_sum.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"
#include "starling/engine/exchange/buckets.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::core {

/// Returns how many elements of a range change together: those of a row, or of the whole range.
[[nodiscard]] inline std::size_t unit_size(const Range& range) {
  return std::max<std::size_t>(1, range.row_size > 0 ? range.row_size : range.count);
}

/// The elements of one worker: the bytes of its update's number of steps, and those of its number
/// of samples, the lowest byte first; all 0 if it has no update. Even bfloat16 holds each byte
/// exactly.
inline constexpr std::size_t sum_steps_bytes = 3;
inline constexpr std::size_t sum_samples_bytes = 4;
inline constexpr std::size_t elements_of_worker = sum_steps_bytes + sum_samples_bytes;

template <class T>
void write_bytes(std::span<T> to, std::uint64_t value) {
  for (T& element : to) {
    element = static_cast<T>(value & 0xFFU);
    value >>= 8U;
  }
}

template <class T>
[[nodiscard]] std::uint64_t read_bytes(std::span<const T> from) {
  std::uint64_t value = 0;
  for (std::size_t i = from.size(); i-- > 0;)
    value = value << 8U | static_cast<std::uint64_t>(from[i]);
  return value;
}

/// Indices into the vector of a bucket.
struct SumOffsets {
  Bucket bucket;
  /// By range of the bucket: where its elements begin. After them come its counts of changed units
  /// (unit_size()).
  std::vector<std::size_t> ranges;
  /// Where the elements of all workers begin. There is one copy of them after all ranges
  /// (in_order()), or one after each range (in_shards()).
  std::vector<std::size_t> workers;
  std::size_t size = 0;
  /// By range of the layout: where its rounding errors begin among those of all ranges
  /// (SumResidual); at last, the number of these errors. It depends on the layout alone.
  std::vector<std::size_t> errors;
  /// Where the slices begin, and at last `size` (Executor::start). in_order() leaves `slices`
  /// empty, for the caller to fill. In shards, slice s of chunk c is the range
  /// aligned_first(workers) + s * workers + c, followed by the elements of all workers; it is empty
  /// if the bucket does not contain this range.
  std::vector<std::size_t> slices;

  /// Returns the offsets if the ranges follow each other, and the elements of the workers follow
  /// the last range.
  [[nodiscard]] static SumOffsets in_order(const Layout& layout, const Bucket& bucket,
                                           std::size_t workers);
  /// Returns the offsets if each range is a slice of the chunk of its primary.
  [[nodiscard]] static SumOffsets in_shards(const Layout& layout, const Bucket& bucket,
                                            std::size_t workers);

  /// In shards: returns the highest multiple of `workers` that is not above the first range.
  [[nodiscard]] std::size_t aligned_first(std::size_t workers) const {
    return bucket.first - bucket.first % workers;
  }
  /// Returns how many elements and counts a range has.
  [[nodiscard]] std::size_t size_of(RangeId range) const {
    return errors[range + 1] - errors[range];
  }
  /// Returns where the elements of a range begin.
  [[nodiscard]] std::size_t offset_of(RangeId range) const { return ranges[range - bucket.first]; }
  /// Returns the elements of a range and its counts.
  template <class Element>
  [[nodiscard]] std::span<Element> of_range(std::span<Element> vector, RangeId range) const {
    return vector.subspan(offset_of(range), size_of(range));
  }
  template <class Element>
  [[nodiscard]] static std::span<Element> of_worker(std::span<Element> vector, std::size_t offset,
                                                    std::size_t rank) {
    return vector.subspan(offset + elements_of_worker * rank, elements_of_worker);
  }
};

}  // namespace starling::core
