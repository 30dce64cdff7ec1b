#include "starling/engine/exchange/ownership/range_cache.hpp"

#include <algorithm>
#include <utility>

namespace starling::core {
namespace {

std::size_t row_count(const Range& range) {
  return range.row_size > 0 ? range.count / range.row_size : 1;
}

/// Calls `use` with each index of CachedRange::floors that the rows stand for.
template <class Use>
void for_each_row(const Range& range, const Rows& rows, Use use) {
  if (rows)
    for (const std::uint32_t row : *rows) use(row);
  else
    for (std::uint32_t row = 0; row < row_count(range); ++row) use(row);
}

}  // namespace

std::optional<Rows> RangeCache::missing(RangeId id, const Rows& rows, Step oldest) const {
  const Range& range = layout_->ranges[id];
  const auto known = ranges_.find(id);
  std::vector<std::uint32_t> found;
  for_each_row(range, rows, [&](std::uint32_t row) {
    const auto floor = known == ranges_.end() ? std::nullopt : known->second.floors[row];
    if (!floor || *floor < oldest) found.push_back(row);
  });
  if (found.empty()) return std::nullopt;
  const std::size_t row_total = rows ? rows->size() : row_count(range);
  if (found.size() == row_total) return rows;
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(found));
}

void RangeCache::put(RangeId id, const Slice& values, Step floor) {
  const Range& range = layout_->ranges[id];
  CachedRange& cache = find_or_add(id);
  put_slice(range, cache.values, values);
  for_each_row(range, values.rows, [&](std::uint32_t row) { cache.floors[row] = floor; });
}

Slice RangeCache::read(RangeId id, const Rows& rows) {
  return slice_of(layout_->ranges[id], find_or_add(id).values, rows);
}

void RangeCache::apply(RangeId id, const Slice& update, std::uint32_t samples, std::size_t workers,
                       std::uint64_t updates, std::uint64_t samples_total) {
  const auto known = ranges_.find(id);
  if (known == ranges_.end() || update.empty()) return;
  RangeValues& values = known->second.values;
  values.updates = updates;
  values.samples = samples_total;
  applier_->apply(*layout_, id, values, update, applier_->weight(samples, workers));
}

RangeCache::CachedRange& RangeCache::find_or_add(RangeId id) {
  const auto [entry, is_new] = ranges_.try_emplace(id);
  if (is_new) {
    const Range& range = layout_->ranges[id];
    const std::size_t width = applier_->element_bytes();
    entry->second.values.value = Buffer::zeros(range.count, width);
    entry->second.values.slots = Buffer::zeros(applier_->slot_count() * range.count, width);
    entry->second.floors.resize(row_count(range));
  }
  return entry->second;
}

}  // namespace starling::core
