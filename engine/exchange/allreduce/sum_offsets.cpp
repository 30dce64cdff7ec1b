#include "starling/engine/exchange/allreduce/sum_offsets.hpp"

#include <algorithm>

namespace starling::core {
namespace {

/// Returns the offsets of the errors, and no others.
SumOffsets offsets_of_errors(const Layout& layout) {
  SumOffsets offsets;
  offsets.errors.push_back(0);
  for (const Range& range : layout.ranges)
    offsets.errors.push_back(offsets.errors.back() + range.count + range.count / unit_size(range));
  return offsets;
}

}  // namespace

SumOffsets SumOffsets::in_order(const Layout& layout, const Bucket& bucket, std::size_t workers) {
  SumOffsets offsets = offsets_of_errors(layout);
  offsets.bucket = bucket;
  for (RangeId range = bucket.first; range < bucket.end; ++range) {
    offsets.ranges.push_back(offsets.size);
    offsets.size += offsets.size_of(range);
  }
  offsets.workers = {offsets.size};
  offsets.size += elements_of_worker * workers;
  return offsets;
}

SumOffsets SumOffsets::in_shards(const Layout& layout, const Bucket& bucket, std::size_t workers) {
  SumOffsets offsets = offsets_of_errors(layout);
  offsets.bucket = bucket;
  offsets.ranges.resize(bucket.end - bucket.first);
  offsets.workers.resize(bucket.end - bucket.first);
  const std::size_t aligned_first = offsets.aligned_first(workers);
  const std::size_t slices =
      std::max<std::size_t>(1, (bucket.end - aligned_first + workers - 1) / workers);
  for (std::size_t chunk = 0; chunk < workers; ++chunk)
    for (std::size_t slice = 0; slice < slices; ++slice) {
      offsets.slices.push_back(offsets.size);
      const auto range = static_cast<RangeId>(aligned_first + slice * workers + chunk);
      if (!bucket.contains(range)) continue;
      offsets.ranges[range - bucket.first] = offsets.size;
      offsets.size += offsets.size_of(range);
      offsets.workers[range - bucket.first] = offsets.size;
      offsets.size += elements_of_worker * workers;
    }
  offsets.slices.push_back(offsets.size);
  return offsets;
}

}  // namespace starling::core
