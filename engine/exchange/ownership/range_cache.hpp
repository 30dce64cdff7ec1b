/// A worker's copies of what it has read, so that it reads again only what has become too old: the
/// cache of stale synchronous parallel (Ho et al., "More Effective Distributed ML via a Stale
/// Synchronous Parallel Parameter Server", NIPS 2013, section 3).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "starling/engine/exchange/applier.hpp"

namespace starling::core {

/// One call at a time; not thread-safe. Keeps each range that was read in a buffer as large as the
/// range, and for each row of the range how new its values are.
class RangeCache {
 public:
  RangeCache(std::shared_ptr<const Layout> layout, ApplierPtr applier)
      : layout_(std::move(layout)), applier_(std::move(applier)) {}

  /// Returns those of `rows` that are not in the cache, or whose cached values may lack updates of
  /// steps up to `oldest`; nullopt if there are no such rows. A range without rows is missing as a
  /// whole, or not at all.
  [[nodiscard]] std::optional<Rows> missing(RangeId range, const Rows& rows, Step oldest) const;

  /// Keeps values of a range that contain the updates of all workers up to step `floor`. Requires:
  /// fits(range, values, element_bytes).
  void put(RangeId range, const Slice& values, Step floor);

  /// Returns the values of the rows, with this worker's own updates. Requires: missing(range, rows,
  /// 0) is nullopt.
  [[nodiscard]] Slice read(RangeId range, const Rows& rows);

  /// Applies an update of this worker, over `samples` samples, to the cached values of its range,
  /// if there are any, as an owner does: in a job of `workers` workers, after `updates` updates
  /// over `samples_total` samples of all workers.
  void apply(RangeId range, const Slice& update, std::uint32_t samples, std::size_t workers,
             std::uint64_t updates, std::uint64_t samples_total);

 private:
  struct CachedRange {
    RangeValues values;
    /// By row, or one for a range without rows: the step up to which the values contain the updates
    /// of all workers; nullopt if they were not read.
    std::vector<std::optional<Step>> floors;
  };
  CachedRange& find_or_add(RangeId range);

  std::shared_ptr<const Layout> layout_;
  ApplierPtr applier_;
  std::unordered_map<RangeId, CachedRange> ranges_;
};

}  // namespace starling::core
