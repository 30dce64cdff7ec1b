/// An engine's tensors, which are called *keys* because users find them by name, and the ranges
/// into which each is divided. Internal to the engines. The argument `k` of a function is the
/// position of a key among all keys.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "starling/actor/engines/engine_hooks.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::actor::detail {

/// Quotes the name of a key for messages to people.
[[nodiscard]] inline std::string quoted_key(std::string_view name) {
  return "key '" + std::string{name} + "'";
}

/// The chosen rows of a key that lie in one range.
struct RowPiece {
  core::RangeId range;
  /// The rows, counted from the first row of the range.
  core::Rows rows;
  /// The position of its first row among all chosen rows of the key.
  std::size_t first_position;
};

/// The keys of an engine and their ranges. Immutable; thread-safe. Every range has elements of one
/// key only, so that an update of one key touches no other.
class KeyTable {
 public:
  /// Returns an Error if there are no keys, if models::check() refuses them, for example because of
  /// an empty or duplicate name or an extent of 0, or if a row of a row-sparse key is too long for
  /// one range.
  static Result<KeyTable> make(std::vector<models::Parameter> keys, std::size_t element_bytes,
                               std::size_t owners);

  [[nodiscard]] const core::Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const models::Parameter& key(std::size_t k) const { return layout_.parameters[k]; }
  /// The ranges of key `k`: from the first number up to, but not including, the second.
  [[nodiscard]] std::pair<core::RangeId, core::RangeId> ranges(std::size_t k) const {
    return {range_bounds_[k], range_bounds_[k + 1]};
  }
  /// The offset, in its key, of the first element of a range.
  [[nodiscard]] std::size_t offset_in_key(core::RangeId range) const {
    return layout_.ranges[range].segments.front().parameter_offset;
  }
  /// The position of the key that the range is a part of.
  [[nodiscard]] std::size_t key_index_of(core::RangeId range) const {
    return layout_.ranges[range].segments.front().parameter;
  }

  /// Returns the position of a key. The Error for an unknown name suggests the nearest known one.
  [[nodiscard]] Result<std::size_t> find(std::string_view name) const;
  /// Returns an Error if key `k` is dense, because only rows of a row-sparse key can be read or
  /// updated alone, or if a row does not exist or is repeated. Requires: `rows` are sorted in
  /// ascending order.
  [[nodiscard]] Result<void> check_selected_rows(std::size_t k,
                                                 std::span<const std::uint32_t> rows) const;
  /// Splits rows of key `k` by range. Requires: check_selected_rows() accepts them.
  [[nodiscard]] std::vector<RowPiece> split(std::size_t k,
                                            std::span<const std::uint32_t> rows) const;
  /// Returns the ranges that a Selection reads: all ranges of its key or, if it has rows, those in
  /// which the rows lie, each with its rows. For an empty list of rows it returns the first range
  /// of the key with no rows. Returns an Error if the key is unknown or check_selected_rows()
  /// refuses the rows.
  [[nodiscard]] Result<std::vector<core::RangeRows>> ranges_of(const Selection& selection) const;

 private:
  KeyTable() = default;
  void append(models::Parameter key, std::size_t element_bytes, std::size_t owners);

  core::Layout layout_;
  std::vector<std::string> names_;
  /// The first range of each key, and at the end the number of ranges.
  std::vector<core::RangeId> range_bounds_{0};
  /// The position of each key, by its name.
  std::unordered_map<std::string, std::size_t> positions_;
};

/// Returns all elements of key `k`, row-major, from the states of all ranges.
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
