/// The combiner: a buffer that holds one record for each key and adds the values of equal keys as
/// they come, so that a shuffle moves each key at most once a run. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/shuffle/ranked_positions.hpp"
#include "starling/engine/flow/values/footprint.hpp"

namespace starling::flow {

/// `Combine` makes one value of two: `V combine(const V&, const V&)`.
template <class K, class V, class Combine>
class CombiningBuffer {
 public:
  using Record = Keyed<K, V>;
  /// add() makes K and V of what it is given.
  static constexpr bool takes_views = true;

  /// If `is_prompt`, add() combines the record that it gets, so that an exception of `combine`
  /// belongs to this record. Otherwise, add() is faster: records wait until the memory in which
  /// their keys are searched has come into the cache. The records and bytes that take() returns are
  /// the same in both cases.
  CombiningBuffer(const Combine& combine, bool is_prompt)
      : combine_(&combine), is_prompt_(is_prompt) {}

  /// Adds the record {hash, key, value}. Returns by how many bytes the buffer has grown.
  template <class OfKey, class OfValue>
  std::size_t add(std::uint64_t hash, OfKey&& key, OfValue&& value) {
    if (owned_bytes(key) + owned_bytes(value) > waiting_bytes_max) {
      // Large records do not wait, because waiting records are not counted.
      const std::size_t grown = finish();
      return grown + insert({hash, K(std::forward<OfKey>(key)), V(std::forward<OfValue>(value))});
    }
    Waiting& newest = waiting_[waiting_end_ % waiting_max];
    const std::size_t grown = waiting_end_ < waiting_max ? 0 : end_waiting(newest);
    if constexpr (std::is_same_v<std::remove_cvref_t<OfKey>, K>) {
      newest.record = {hash, std::forward<OfKey>(key), V(std::forward<OfValue>(value))};
    } else {
      // A copy of the viewed text into the string that is there takes less time than a new string.
      newest.record.hash = hash;
      newest.record.key = std::forward<OfKey>(key);
      newest.record.value = std::forward<OfValue>(value);
    }
    ++waiting_end_;
    if (is_prompt_) {
      newest.grown = insert(std::move(newest.record));
    } else if (!slots_.empty()) {
      // This is not in a function of its own, because gcc 12 would drop its calls.
      const std::size_t mask = slots_.size() - 1;
      __builtin_prefetch(&slots_[hash & mask]);
      const Waiting& older = waiting_[(waiting_end_ + waiting_max / 2) % waiting_max];
      const Slot& slot = slots_[older.record.hash & mask];
      if (slot.record_number > 0) __builtin_prefetch(&records_[slot.record_number - 1]);
    }
    return grown;
  }
  /// Combines the records that wait. Returns by how many bytes the buffer has grown.
  std::size_t finish() {
    std::size_t grown = 0;
    const std::size_t begin = waiting_end_ - std::min(waiting_end_, waiting_max);
    for (std::size_t i = begin; i < waiting_end_; ++i)
      grown += end_waiting(waiting_[i % waiting_max]);
    waiting_end_ = 0;
    return grown;
  }

  /// Returns the records in the order of their hashes. Records with the same hash are in the order
  /// in which their keys first came.
  [[nodiscard]] BufferedBlocks take() {
    finish();
    slots_.clear();
    const std::vector<Record> records = std::exchange(records_, {});
    std::vector<RankedPosition> positions;
    positions.reserve(records.size());
    for (const Record& record : records)
      positions.emplace_back(record.hash, static_cast<std::uint32_t>(positions.size()));
    sort_positions(positions, std::less<>{});
    BlockWriter writer;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      constexpr std::size_t ahead = 8;
      if (i + ahead < positions.size()) __builtin_prefetch(&records[positions[i + ahead].second]);
      writer.add(records[positions[i].second]);
    }
    return {writer.finish(), records.size()};
  }

 private:
  static constexpr std::size_t waiting_max = 16;
  static constexpr std::size_t waiting_bytes_max = 4096;

  struct Waiting {
    Record record{};
    /// By how many bytes this record has made a prompt buffer grow. The buffer reports this as late
    /// as one that is not prompt does, so that each run ends with the same record in both cases.
    std::size_t grown = 0;
  };

  struct Slot {
    /// The upper half of the hash. Where it differs, no record needs to be read.
    std::uint32_t tag = 0;
    /// The number of the record, from 1 on; 0 if the slot is empty.
    std::uint32_t record_number = 0;
  };

  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32U);
  }

  std::size_t end_waiting(Waiting& waiting) {
    return is_prompt_ ? waiting.grown : insert(std::move(waiting.record));
  }

  /// Returns by how many bytes the buffer has grown.
  std::size_t insert(Record&& record) {
    if (2 * (records_.size() + 1) > slots_.size()) grow();
    Slot& slot = find(record.hash, record.key);
    if (slot.record_number == 0) {
      records_.push_back(std::move(record));
      slot = {tag_of(records_.back().hash), static_cast<std::uint32_t>(records_.size())};
      return footprint(records_.back()) + 2 * sizeof slot;
    }
    V& sum = records_[slot.record_number - 1].value;
    const std::size_t before = owned_bytes(sum);
    sum = std::invoke(*combine_, std::as_const(sum), std::as_const(record.value));
    const std::size_t after = owned_bytes(sum);
    return after > before ? after - before : 0;
  }

  /// Returns the slot of a key: that with a record of this key, or else an empty one.
  Slot& find(std::uint64_t hash, const K& key) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.record_number == 0) return slot;
      if (slot.tag != tag_of(hash)) continue;
      const Record& record = records_[slot.record_number - 1];
      if (record.hash == hash && record.key == key) return slot;
    }
  }

  void grow() {
    constexpr std::size_t slots_min = 64;
    slots_.assign(slots_.empty() ? slots_min : 2 * slots_.size(), Slot{});
    for (std::size_t i = 0; i < records_.size(); ++i)
      find(records_[i].hash, records_[i].key) = {tag_of(records_[i].hash),
                                                 static_cast<std::uint32_t>(i + 1)};
  }

  const Combine* combine_;
  bool is_prompt_;
  std::vector<Record> records_;
  /// A hash table with open addressing, at most half full. Its size is a power of two.
  std::vector<Slot> slots_;
  /// The last records that have come: number i at i % waiting_max.
  std::array<Waiting, waiting_max> waiting_{};
  /// The number of records that have come since the last finish().
  std::size_t waiting_end_ = 0;
};

}  // namespace starling::flow
