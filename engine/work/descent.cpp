#include "starling/engine/work/descent.hpp"

#include <vector>

namespace starling::core {
namespace {

/// Returns by range the slices that hold a whole range; nullptr for the other ranges.
template <class Entry>
std::vector<const Slice*> whole_ranges(std::span<const Entry> list, Slice Entry::*slice,
                                       std::size_t ranges) {
  std::vector<const Slice*> found(ranges);
  for (const Entry& entry : list)
    if (!(entry.*slice).empty() && !(entry.*slice).rows) found[entry.range] = &(entry.*slice);
  return found;
}

/// The slices of one range in the former and in the current step.
struct RangeMove {
  const Slice* from;
  const Slice* to;
  const Slice* gradient_at_start;
  const Slice* gradient_at_end;

  [[nodiscard]] bool is_whole() const {
    return from != nullptr && to != nullptr && gradient_at_start != nullptr &&
           gradient_at_end != nullptr;
  }
};

template <class T>
void add(const RangeMove& move, const Segment& segment, barrier::Descent& sum) {
  const auto part = [&](const Slice* slice) {
    return slice->as<T>().subspan(segment.offset, segment.count);
  };
  const auto from = part(move.from);
  const auto to = part(move.to);
  const auto start = part(move.gradient_at_start);
  const auto end = part(move.gradient_at_end);
  double at_start = 0;
  double at_end = 0;
  for (std::size_t i = 0; i < segment.count; ++i) {
    const double moved = static_cast<double>(from[i]) - static_cast<double>(to[i]);
    at_start += moved * static_cast<double>(start[i]);
    at_end += moved * static_cast<double>(end[i]);
  }
  sum.at_start += at_start;
  sum.at_end += at_end;
}

}  // namespace

std::optional<barrier::Descent> descent_from(const FormerStep& former,
                                             std::span<const Value> values,
                                             std::span<const Update::Part> update,
                                             const Layout& layout) {
  const std::size_t count = layout.ranges.size();
  const auto from = whole_ranges<Value>(former.values, &Value::value, count);
  const auto to = whole_ranges<Value>(values, &Value::value, count);
  const auto at_start = whole_ranges<Update::Part>(former.update, &Update::Part::values, count);
  const auto at_end = whole_ranges<Update::Part>(update, &Update::Part::values, count);
  std::optional<barrier::Descent> sum;
  for (std::size_t range = 0; range < count; ++range) {
    const RangeMove move{from[range], to[range], at_start[range], at_end[range]};
    if (!move.is_whole()) continue;
    if (!sum) sum.emplace();
    for (const Segment& segment : layout.ranges[range].segments) {
      if (!layout.parameters[segment.parameter].trained) continue;
      if (move.from->buffer->element_bytes() == sizeof(float))
        add<float>(move, segment, *sum);
      else
        add<double>(move, segment, *sum);
    }
  }
  return sum;
}

}  // namespace starling::core
