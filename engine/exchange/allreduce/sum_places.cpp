#include "starling/engine/exchange/allreduce/sum_places.hpp"

#include <algorithm>

namespace starling::core {
namespace {

/// Returns the places of the errors, and no others.
SumPlaces places_of_errors(const Layout& layout) {
  SumPlaces places;
  places.errors.push_back(0);
  for (const Range& range : layout.ranges)
    places.errors.push_back(places.errors.back() + range.count + range.count / unit_size(range));
  return places;
}

}  // namespace

SumPlaces SumPlaces::in_order(const Layout& layout, const Bucket& bucket, std::size_t workers) {
  SumPlaces places = places_of_errors(layout);
  places.bucket = bucket;
  for (RangeId range = bucket.first; range < bucket.end; ++range) {
    places.ranges.push_back(places.size);
    places.size += places.size_of(range);
  }
  places.workers = {places.size};
  places.size += elements_of_worker * workers;
  return places;
}

SumPlaces SumPlaces::in_shards(const Layout& layout, const Bucket& bucket, std::size_t workers) {
  SumPlaces places = places_of_errors(layout);
  places.bucket = bucket;
  places.ranges.resize(bucket.end - bucket.first);
  places.workers.resize(bucket.end - bucket.first);
  const std::size_t first_row = places.first_row(workers);
  const std::size_t slices =
      std::max<std::size_t>(1, (bucket.end - first_row + workers - 1) / workers);
  for (std::size_t chunk = 0; chunk < workers; ++chunk)
    for (std::size_t slice = 0; slice < slices; ++slice) {
      places.slices.push_back(places.size);
      const auto range = static_cast<RangeId>(first_row + slice * workers + chunk);
      if (!bucket.contains(range)) continue;
      places.ranges[range - bucket.first] = places.size;
      places.size += places.size_of(range);
      places.workers[range - bucket.first] = places.size;
      places.size += elements_of_worker * workers;
    }
  places.slices.push_back(places.size);
  return places;
}

}  // namespace starling::core
