/// The names and shapes of an engine's tensors, and the ranges that each is divided into. Internal
/// to the engines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "starling/actor/engines/engine_hooks.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/ownership/layout.hpp"

namespace starling::actor::detail {

/// The name of a key as messages to people quote it.
[[nodiscard]] inline std::string quoted_key(std::string_view name) {
  return "key '" + std::string{name} + "'";
}

/// Rows of a key that lie in one range.
struct RowPiece {
  core::RangeId range;
  core::Rows rows;
  /// Position of its first row among all chosen ones.
  std::size_t first;
};

/// Immutable once made; any thread. Every range holds elements of one key only, so that an update
/// of a key touches no other.
class KeyTable {
 public:
  /// Refuses empty and duplicate names, empty extents, and rows that no range can hold.
  static Result<KeyTable> make(std::vector<models::Parameter> keys, std::size_t element_bytes,
                               std::size_t owners);

  [[nodiscard]] const core::Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const models::Parameter& key(std::size_t k) const { return layout_.parameters[k]; }
  /// The ranges of key `k`: from the first number up to, but without, the second.
  [[nodiscard]] std::pair<core::RangeId, core::RangeId> ranges(std::size_t k) const {
    return {range_offsets_[k], range_offsets_[k + 1]};
  }
  /// First element of a range, counted from its key's first.
  [[nodiscard]] std::size_t offset_in_key(core::RangeId range) const {
    return layout_.ranges[range].segments.front().parameter_offset;
  }
  [[nodiscard]] std::size_t key_of(core::RangeId range) const {
    return layout_.ranges[range].segments.front().parameter;
  }

  /// Refuses an unknown name with the nearest known.
  [[nodiscard]] Result<std::size_t> find(std::string_view name) const;
  /// Refuses rows of a dense key, rows out of range and repeated ones; `rows` ascend.
  [[nodiscard]] Result<void> check_rows(std::size_t k, std::span<const std::uint32_t> rows) const;
  /// Splits rows by range. Requires: rows that check_rows accepts.
  [[nodiscard]] std::vector<RowPiece> split(std::size_t k,
                                            std::span<const std::uint32_t> rows) const;
  /// The ranges, and the rows of them, that a Selection asks the owners for.
  [[nodiscard]] Result<std::vector<core::RangeRows>> ranges_of(const Selection& selection) const;

 private:
  KeyTable() = default;
  void append(models::Parameter key, std::size_t element_bytes, std::size_t owners);

  core::Layout layout_;
  std::vector<std::string> names_;
  /// The first range of each key, and behind them the number of ranges.
  std::vector<core::RangeId> range_offsets_{0};
  std::unordered_map<std::string, std::size_t> position_;
};

/// All of key `k` out of the state of every range, row-major.
template <class T>
[[nodiscard]] std::vector<T> collect(const KeyTable& keys, std::size_t k,
                                     std::span<const core::RangeState> states) {
  std::vector<T> values;
  values.reserve(keys.key(k).size());
  for (auto [range_id, end] = keys.ranges(k); range_id < end; ++range_id) {
    const auto part = states[range_id].value.template as<T>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

}  // namespace starling::actor::detail
