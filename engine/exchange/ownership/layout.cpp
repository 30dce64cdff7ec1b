#include "starling/engine/exchange/ownership/layout.hpp"

#include <algorithm>
#include <numeric>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"

namespace starling::core {
namespace {

constexpr std::size_t range_bytes_min = std::size_t{4} << 10U;

/// Returns how many elements a range may hold so that each of `owners` gets some of `size`.
std::size_t range_elements(std::size_t size, std::size_t element_bytes, std::size_t owners) {
  const std::size_t fair = (size + owners - 1) / owners;
  // Shares that are rounded up are equal, but with many owners there may be too few of them.
  const bool enough = fair == 0 || (size + fair - 1) / fair >= owners;
  return std::clamp(enough ? fair : size / owners, range_bytes_min / element_bytes,
                    range_bytes_max / element_bytes);
}

class Cutter {
 public:
  /// Ranges hold about `elements` and never more than `most`.
  Cutter(Layout& layout, std::size_t elements, std::size_t most)
      : layout_(layout), elements_(elements), most_(most) {}

  void add_rows(std::size_t parameter) {
    const auto& shape = layout_.parameters[parameter];
    const std::size_t row = shape.row_size();
    if (row > most_) return add_dense(parameter);
    close();
    row_size_ = row;
    const std::size_t limit = std::max(elements_, row) / row * row;
    fill(parameter, shape.size(), limit);
    close();
    row_size_ = 0;
  }

  void add_dense(std::size_t parameter) {
    fill(parameter, layout_.parameters[parameter].size(), elements_);
  }

  void close() {
    if (open_.count > 0) layout_.ranges.push_back(std::move(open_));
    open_ = {.offset = at_, .count = 0, .row_size = 0, .segments = {}};
  }

 private:
  void fill(std::size_t parameter, std::size_t size, std::size_t limit) {
    for (std::size_t done = 0; done < size;) {
      const std::size_t take = std::min(size - done, limit - open_.count);
      open_.row_size = row_size_;
      open_.segments.push_back({parameter, open_.count, done, take});
      open_.count += take;
      at_ += take;
      done += take;
      if (open_.count == limit) close();
    }
  }

  Layout& layout_;
  std::size_t elements_;
  std::size_t most_;
  std::size_t at_ = 0;
  std::size_t row_size_ = 0;
  Range open_{.offset = 0, .count = 0, .row_size = 0, .segments = {}};
};

}  // namespace

std::pair<RangeId, RangeId> Layout::ranges_of(std::size_t p) const {
  const std::size_t first = offsets[p];
  const std::size_t last = first + parameters[p].size();
  if (first == last) return {0, 0};
  const auto from = std::ranges::partition_point(
      ranges, [&](const Range& range) { return range.offset + range.count <= first; });
  const auto to =
      std::ranges::partition_point(ranges, [&](const Range& range) { return range.offset < last; });
  return {static_cast<RangeId>(from - ranges.begin()), static_cast<RangeId>(to - ranges.begin())};
}

Layout cut(std::vector<models::Parameter> parameters, std::size_t element_bytes,
           std::size_t owners) {
  STARLING_CHECK(owners > 0 && element_bytes > 0);
  Layout layout{.parameters = std::move(parameters), .offsets = {}, .ranges = {}, .size = 0};
  for (const auto& parameter : layout.parameters) {
    layout.offsets.push_back(layout.size);
    layout.size += parameter.size();
  }
  Cutter cutter{layout, range_elements(layout.size, element_bytes, owners),
                range_bytes_max / element_bytes};
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    if (layout.parameters[p].row_sparse)
      cutter.add_rows(p);
    else
      cutter.add_dense(p);
  }
  cutter.close();
  return layout;
}

bool fits(const Range& range, const Slice& slice, std::size_t element_bytes) {
  const auto& [buffer, offset, count, rows] = slice;
  if (rows && !rows->empty() &&
      (range.row_size == 0 || std::ranges::max(*rows) >= range.count / range.row_size))
    return false;
  if (count != (rows ? rows->size() * range.row_size : range.count)) return false;
  if (count == 0) return true;
  return buffer && buffer->element_bytes() == element_bytes && offset <= buffer->size() &&
         count <= buffer->size() - offset;
}

std::vector<OwnerId> assign(std::size_t ranges, std::size_t owners) {
  STARLING_CHECK(owners > 0);
  std::vector<std::vector<RangeId>> held(owners);
  held[0].resize(ranges);
  std::iota(held[0].begin(), held[0].end(), RangeId{0});
  std::ranges::sort(held[0], {}, [](RangeId range) { return mix(range); });
  // Each owner in `rich` holds one range more than each in `poor`.
  std::vector<OwnerId> rich;
  std::vector<OwnerId> poor{0};
  for (OwnerId joiner = 1; joiner < owners; ++joiner) {
    const std::size_t share = ranges / (joiner + 1);
    while (held[joiner].size() < share) {
      if (rich.empty()) std::swap(rich, poor);
      const OwnerId giver = rich.back();
      rich.pop_back();
      poor.push_back(giver);
      held[joiner].push_back(held[giver].back());
      held[giver].pop_back();
    }
    if (!poor.empty() && held[poor.back()].size() > share) {
      STARLING_CHECK(rich.empty());
      std::swap(rich, poor);
    }
    poor.push_back(joiner);
  }
  std::vector<OwnerId> owner_of(ranges);
  for (OwnerId owner = 0; owner < owners; ++owner)
    for (const RangeId range : held[owner]) owner_of[range] = owner;
  return owner_of;
}

}  // namespace starling::core
