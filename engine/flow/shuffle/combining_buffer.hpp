/// The combiner: a buffer that holds one record for each key and adds the values of equal keys as
/// they come, so that a shuffle moves each key at most once a run. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/values/footprint.hpp"

namespace starling::flow {

/// `Combine` makes one value of two: `V combine(const V&, const V&)`.
template <class K, class V, class Combine>
class CombiningBuffer {
 public:
  using Record = Keyed<K, V>;

  explicit CombiningBuffer(const Combine& combine) : combine_(&combine) {}

  /// Returns by how many bytes the buffer has grown.
  std::size_t add(Record record) {
    if (2 * (records_.size() + 1) > slots_.size()) grow();
    std::uint32_t& slot = find(record);
    if (slot == 0) {
      const std::size_t bytes = footprint(record) + 2 * sizeof slot;
      records_.push_back(std::move(record));
      slot = static_cast<std::uint32_t>(records_.size());
      return bytes;
    }
    V& value = records_[slot - 1].value;
    const std::size_t before = owned_bytes(value);
    value = std::invoke(*combine_, std::as_const(value), std::as_const(record.value));
    const std::size_t after = owned_bytes(value);
    return after > before ? after - before : 0;
  }

  /// Returns the records in the order in which their keys came first.
  [[nodiscard]] std::vector<Record> take() {
    slots_.clear();
    return std::exchange(records_, {});
  }

 private:
  /// Returns the slot of the record's key: that with a record of this key, or else an empty one.
  std::uint32_t& find(const Record& record) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = record.hash & mask;; i = (i + 1) & mask) {
      if (slots_[i] == 0) return slots_[i];
      const Record& other = records_[slots_[i] - 1];
      if (other.hash == record.hash && other.key == record.key) return slots_[i];
    }
  }

  void grow() {
    constexpr std::size_t slots_min = 16;
    slots_.assign(slots_.empty() ? slots_min : 2 * slots_.size(), 0);
    for (std::size_t i = 0; i < records_.size(); ++i)
      find(records_[i]) = static_cast<std::uint32_t>(i + 1);
  }

  const Combine* combine_;
  std::vector<Record> records_;
  /// A hash table with open addressing, at most half full. A slot has the position of a record plus
  /// 1, or 0. Its size is a power of two.
  std::vector<std::uint32_t> slots_;
};

}  // namespace starling::flow
