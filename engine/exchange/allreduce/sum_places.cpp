#include "starling/engine/exchange/allreduce/sum_places.hpp"

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

SumPlaces SumPlaces::in_order(const Layout& layout, std::size_t workers) {
  SumPlaces places = places_of_errors(layout);
  places.ranges.assign(places.errors.begin(), places.errors.end() - 1);
  places.workers = {places.errors.back()};
  places.size = places.workers.front() + elements_of_worker * workers;
  return places;
}

SumPlaces SumPlaces::in_shards(const Layout& layout, std::size_t workers) {
  SumPlaces places = places_of_errors(layout);
  const std::size_t ranges = layout.ranges.size();
  places.ranges.resize(ranges);
  places.workers.resize(ranges);
  const std::size_t slices = std::max<std::size_t>(1, (ranges + workers - 1) / workers);
  for (std::size_t chunk = 0; chunk < workers; ++chunk)
    for (std::size_t slice = 0; slice < slices; ++slice) {
      places.slices.push_back(places.size);
      const std::size_t range = slice * workers + chunk;
      if (range >= ranges) continue;
      places.ranges[range] = places.size;
      places.workers[range] = places.size + places.errors[range + 1] - places.errors[range];
      places.size = places.workers[range] + elements_of_worker * workers;
    }
  places.slices.push_back(places.size);
  return places;
}

}  // namespace starling::core
