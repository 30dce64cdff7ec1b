/// The parameter vector cut into ranges, once, when a job starts.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/slice.hpp"
#include "starling/models/parameter.hpp"

namespace starling::core {

/// A range never holds more than this many bytes, whatever the element type.
inline constexpr std::size_t range_bytes_max = std::size_t{256} << 10U;

/// The part of one parameter that lies in one range.
struct Segment {
  /// Position in Layout::parameters.
  std::size_t parameter;
  /// First element, counted from the range's first.
  std::size_t offset;
  /// First element, counted from the parameter's first.
  std::size_t parameter_offset;
  std::size_t count;
};

/// A run of consecutive elements of the parameter vector: the unit of push, pull, acknowledgement,
/// de-duplication and ownership.
struct Range {
  std::size_t offset;
  std::size_t count;
  /// Elements a row where the range belongs to a row-sparse parameter; 0 elsewhere.
  std::size_t row_size;
  std::vector<Segment> segments;
};

/// True where `slice` can be of `range`: it has all elements of the range, or those of existing
/// rows, and its buffer holds them. Slices of other members are not trusted before this check.
[[nodiscard]] bool fits(const Range& range, const Slice& slice, std::size_t element_bytes);

/// The parameters, their places in the vector, and its ranges. Immutable and shared by all members
/// of a job.
struct Layout {
  std::vector<models::Parameter> parameters;
  /// First element of each parameter in the vector.
  std::vector<std::size_t> offsets;
  std::vector<Range> ranges;
  /// Elements in all.
  std::size_t size = 0;

  /// The ranges that hold elements of parameter `p`: [first, last), which is empty for an empty
  /// parameter.
  [[nodiscard]] std::pair<RangeId, RangeId> ranges_of(std::size_t p) const;
};

/// Cuts `parameters` for `owners` owners: row-sparse parameters at row boundaries in ranges of
/// their own, all others as one run. Ranges are small enough for every owner to have some where the
/// parameters allow it (4 KiB and a row at least), and never above range_bytes_max; rows larger
/// than that are cut like a dense parameter.
[[nodiscard]] Layout cut(std::vector<models::Parameter> parameters, std::size_t element_bytes,
                         std::size_t owners);

/// Returns the owner of each range: loads differ by one range at most, and neighbouring ranges are
/// spread. Defined by joining: n + 1 owners hold the ranges that n held, except the newcomer's fair
/// share, rounded down, which it takes from the owners that hold most. No assignment as balanced
/// moves fewer ranges. Alternatives: docs/design/0004-range-assignment.md. Requires: owners > 0.
[[nodiscard]] std::vector<OwnerId> assign(std::size_t ranges, std::size_t owners);

}  // namespace starling::core
