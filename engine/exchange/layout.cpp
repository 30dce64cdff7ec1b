#include "starling/engine/exchange/layout.hpp"

#include <algorithm>
#include <numeric>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"

namespace starling::core {
namespace {

constexpr std::size_t range_bytes_min = std::size_t{4} << 10U;

/// Returns how many elements a range should hold so that each of `owners` owners gets a range of a
/// vector of `size` elements, within the limits of a range's size.
std::size_t range_elements(std::size_t size, std::size_t element_bytes, std::size_t owners) {
  const std::size_t fair_share = (size + owners - 1) / owners;
  // `fair_share` is rounded up. If that makes fewer ranges than owners, rounds down.
  const bool has_range_for_each = fair_share == 0 || (size + fair_share - 1) / fair_share >= owners;
  return std::clamp(has_range_for_each ? fair_share : size / owners,
                    range_bytes_min / element_bytes, range_bytes_max / element_bytes);
}

/// Appends parameters to the ranges of a layout.
class LayoutBuilder {
 public:
  /// Each range holds about `target` elements, and never more than `max`. A range of rows holds at
  /// least one row.
  LayoutBuilder(Layout& layout, std::size_t target, std::size_t max)
      : layout_(layout), target_(target), max_(max) {}

  void add_row_sparse(std::size_t parameter) {
    const auto& shape = layout_.parameters[parameter];
    const std::size_t row_size = shape.row_size();
    if (row_size > max_) return add_dense(parameter);
    finish_range();
    row_size_ = row_size;
    const std::size_t limit = std::max(target_, row_size) / row_size * row_size;
    append(parameter, shape.size(), limit);
    finish_range();
    row_size_ = 0;
  }

  void add_dense(std::size_t parameter) {
    append(parameter, layout_.parameters[parameter].size(), target_);
  }

  void finish_range() {
    if (current_.count > 0) layout_.ranges.push_back(std::move(current_));
    current_ = {.offset = offset_, .count = 0, .row_size = 0, .segments = {}};
  }

 private:
  /// Appends the `size` elements of a parameter to ranges of at most `limit` elements.
  void append(std::size_t parameter, std::size_t size, std::size_t limit) {
    for (std::size_t done = 0; done < size;) {
      const std::size_t count = std::min(size - done, limit - current_.count);
      current_.row_size = row_size_;
      current_.segments.push_back({parameter, current_.count, done, count});
      current_.count += count;
      offset_ += count;
      done += count;
      if (current_.count == limit) finish_range();
    }
  }

  Layout& layout_;
  std::size_t target_;
  std::size_t max_;
  /// The number of elements appended so far.
  std::size_t offset_ = 0;
  /// Range::row_size of the current range.
  std::size_t row_size_ = 0;
  Range current_{.offset = 0, .count = 0, .row_size = 0, .segments = {}};
};

}  // namespace

std::pair<RangeId, RangeId> Layout::ranges_of(std::size_t parameter) const {
  const std::size_t first = offsets[parameter];
  const std::size_t last = first + parameters[parameter].size();
  if (first == last) return {0, 0};
  const auto from = std::ranges::partition_point(
      ranges, [&](const Range& range) { return range.offset + range.count <= first; });
  const auto to =
      std::ranges::partition_point(ranges, [&](const Range& range) { return range.offset < last; });
  return {static_cast<RangeId>(from - ranges.begin()), static_cast<RangeId>(to - ranges.begin())};
}

Layout make_layout(std::vector<models::Parameter> parameters, std::size_t element_bytes,
                   std::size_t owners) {
  STARLING_CHECK(owners > 0 && element_bytes > 0);
  Layout layout{.parameters = std::move(parameters), .offsets = {}, .ranges = {}, .size = 0};
  for (const auto& parameter : layout.parameters) {
    layout.offsets.push_back(layout.size);
    layout.size += parameter.size();
  }
  LayoutBuilder builder{layout, range_elements(layout.size, element_bytes, owners),
                        range_bytes_max / element_bytes};
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    if (layout.parameters[p].row_sparse)
      builder.add_row_sparse(p);
    else
      builder.add_dense(p);
  }
  builder.finish_range();
  return layout;
}

bool fits(const Range& range, const Slice& slice, std::size_t element_bytes) {
  const auto& [buffer, offset, count, rows, is_compact] = slice;
  if (rows && !rows->empty() &&
      (range.row_size == 0 || std::ranges::max(*rows) >= range.count / range.row_size))
    return false;
  if (count != (rows ? rows->size() * range.row_size : range.count)) return false;
  if (count == 0) return true;
  return buffer && buffer->element_bytes() == element_bytes && offset <= buffer->size() &&
         count <= buffer->size() - offset;
}

std::vector<OwnerId> assign_ranges(std::size_t ranges, std::size_t owners) {
  STARLING_CHECK(owners > 0);
  std::vector<std::vector<RangeId>> ranges_of_owner(owners);
  ranges_of_owner[0].resize(ranges);
  std::iota(ranges_of_owner[0].begin(), ranges_of_owner[0].end(), RangeId{0});
  // Orders the ranges by a hash, so that neighbouring ranges usually get different owners.
  std::ranges::sort(ranges_of_owner[0], {}, [](RangeId range) { return mix(range); });
  // Each owner in `larger` holds one range more than each owner in `smaller`.
  std::vector<OwnerId> larger;
  std::vector<OwnerId> smaller{0};
  for (OwnerId joiner = 1; joiner < owners; ++joiner) {
    const std::size_t share = ranges / (joiner + 1);
    while (ranges_of_owner[joiner].size() < share) {
      if (larger.empty()) std::swap(larger, smaller);
      const OwnerId giver = larger.back();
      larger.pop_back();
      smaller.push_back(giver);
      ranges_of_owner[joiner].push_back(ranges_of_owner[giver].back());
      ranges_of_owner[giver].pop_back();
    }
    if (!smaller.empty() && ranges_of_owner[smaller.back()].size() > share) {
      STARLING_CHECK(larger.empty());
      std::swap(larger, smaller);
    }
    smaller.push_back(joiner);
  }
  std::vector<OwnerId> owner_of(ranges);
  for (OwnerId owner = 0; owner < owners; ++owner)
    for (const RangeId range : ranges_of_owner[owner]) owner_of[range] = owner;
  return owner_of;
}

}  // namespace starling::core
