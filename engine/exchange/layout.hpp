/// How the parameter vector is cut into ranges, once, when a job starts. Plain values and pure
/// functions; thread-safe to read and call.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/slice.hpp"
#include "starling/models/parameter.hpp"

namespace starling::core {

/// A range holds at most this many bytes.
inline constexpr std::size_t range_bytes_max = std::size_t{256} << 10U;

/// The part of one parameter that lies in one range.
struct Segment {
  /// Index in Layout::parameters.
  std::size_t parameter;
  /// The index of the segment's first element in the range.
  std::size_t offset;
  /// The index of the segment's first element in the parameter.
  std::size_t parameter_offset;
  std::size_t count;
};

/// A run of consecutive elements of the parameter vector: the unit of push, pull, acknowledgement,
/// de-duplication and ownership.
struct Range {
  /// The index of the range's first element in the vector.
  std::size_t offset;
  std::size_t count;
  /// The number of elements of a row if the range belongs to a row-sparse parameter; else 0.
  std::size_t row_size;
  std::vector<Segment> segments;
};

/// True if `slice` holds values of the whole range or of some of its rows: its size fits, its rows
/// exist, and its buffer contains its elements. Call this before you use a slice from another
/// member.
[[nodiscard]] bool fits(const Range& range, const Slice& slice, std::size_t element_bytes);

/// The parameters, their offsets in the parameter vector, and the vector's ranges. Immutable and
/// shared by all members of a job.
struct Layout {
  std::vector<models::Parameter> parameters;
  /// By parameter: the index of its first element in the vector.
  std::vector<std::size_t> offsets;
  std::vector<Range> ranges;
  /// The number of elements of the vector.
  std::size_t size = 0;

  /// Returns the ranges that hold elements of a parameter as a half-open interval [first, last). It
  /// is empty if the parameter has no elements.
  [[nodiscard]] std::pair<RangeId, RangeId> ranges_of(std::size_t parameter) const;
};

/// Cuts `parameters` into ranges for `owners` owners. A row-sparse parameter is cut at row
/// boundaries into ranges of its own; dense parameters that follow each other share ranges. Ranges
/// are so small that every owner can get one, but not smaller than 4 KiB and one row. They never
/// exceed range_bytes_max: a parameter with larger rows is cut like a dense one.
[[nodiscard]] Layout make_layout(std::vector<models::Parameter> parameters,
                                 std::size_t element_bytes, std::size_t owners);

/// Returns the owner of each range. The owners' numbers of ranges differ by at most one, and
/// neighbouring ranges usually have different owners. If an owner is added to n owners, it takes
/// ranges / (n + 1) ranges, rounded down, from the owners that hold most; all other ranges stay
/// where they are. No assignment of the same balance moves fewer ranges. Alternatives:
/// docs/design/0004-range-assignment.md. Requires: owners > 0.
[[nodiscard]] std::vector<OwnerId> assign_ranges(std::size_t ranges, std::size_t owners);

}  // namespace starling::core
