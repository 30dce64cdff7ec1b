/// Divides the records of a task among the parts of the next stage. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/shuffle/ranked_positions.hpp"
#include "starling/engine/flow/shuffle/run.hpp"

namespace starling::flow {

/// The output of a shuffling task: for each part of the next stage the runs for it. An output of
/// which only a piece was received from another node has the runs for some of these parts.
template <class R>
struct Buckets {
  /// The part of the next stage for which the first list is.
  Part first = 0;
  std::vector<std::vector<Run<R>>> lists;

  /// Returns the runs for a part. Requires: has(part).
  [[nodiscard]] const std::vector<Run<R>>& operator[](Part part) const {
    return lists[part - first];
  }
  [[nodiscard]] bool has(Part part) const { return part >= first && part - first < lists.size(); }
};

/// The bytes of the records that a buffer has collected.
struct BufferedBlocks {
  Blocks blocks;
  std::uint64_t records = 0;
};

/// Collects the bytes of records as they come.
template <class R>
class ArrivalBuffer {
 public:
  /// Adds the record R{fields...}. Returns by how many bytes the buffer has grown.
  template <class... Fields>
  std::size_t add(const Fields&... fields) {
    ++records_;
    return writer_.template add_fields<R>(fields...);
  }
  [[nodiscard]] BufferedBlocks take() { return {writer_.finish(), std::exchange(records_, 0)}; }

 private:
  BlockWriter writer_;
  std::uint64_t records_ = 0;
};

/// Collects the bytes of records, and sorts the records in the order `Order`; equal records stay in
/// the order of arrival.
template <class R, class Order>
class SortingBuffer {
 public:
  /// add() writes the bytes of what it is given, which must have the record's types.
  static constexpr bool takes_views = false;

  /// Adds the record R{first, others...}. Returns by how many bytes the buffer has grown.
  template <class First, class... Others>
  std::size_t add(const First& first, const Others&... others) {
    const std::size_t before = bytes_.size();
    put_fields<R>(bytes_, first, others...);
    positions_.emplace_back(Order::rank_of_first(first), static_cast<std::uint32_t>(ends_.size()));
    ends_.push_back(bytes_.size());
    return bytes_.size() - before + sizeof positions_[0] + sizeof ends_[0];
  }
  [[nodiscard]] BufferedBlocks take() {
    // Sorting ranks with positions moves fewer bytes than sorting records, and reads fewer of them.
    sort_positions(positions_, [this](const RankedPosition& a, const RankedPosition& b) {
      if (a.first != b.first) return a.first < b.first;
      if (a.second < b.second) return !Order::template less_bytes<R>(bytes_of(b), bytes_of(a));
      return Order::template less_bytes<R>(bytes_of(a), bytes_of(b));
    });
    BlockWriter writer;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      constexpr std::size_t ahead = 8;
      if (i + ahead < positions_.size())
        __builtin_prefetch(bytes_.data() + begin_of(positions_[i + ahead].second));
      writer.add_bytes(bytes_of(positions_[i]));
    }
    const std::uint64_t records = positions_.size();
    *this = {};
    return {writer.finish(), records};
  }

 private:
  [[nodiscard]] std::size_t begin_of(std::uint32_t position) const {
    return position == 0 ? 0 : ends_[position - 1];
  }
  [[nodiscard]] std::span<const std::byte> bytes_of(const RankedPosition& position) const {
    const std::size_t begin = begin_of(position.second);
    return std::span{bytes_}.subspan(begin, ends_[position.second] - begin);
  }

  Bytes bytes_;
  /// Where each record ends in `bytes_`.
  std::vector<std::size_t> ends_;
  std::vector<RankedPosition> positions_;
};

/// Collects the records of a task in a buffer for each part of the next stage. When the buffers
/// take more than TaskMemory::buffer_bytes(), they become runs.
template <class R, class Buffer>
class BucketWriter {
 public:
  /// Makes `buckets` default-constructed buffers.
  BucketWriter(const Task& task, Part buckets) : task_(task), buffers_(buckets), runs_{0, {}} {
    runs_.lists.resize(buckets);
  }
  /// Makes `buckets` copies of the buffer `empty`.
  BucketWriter(const Task& task, Part buckets, const Buffer& empty)
      : task_(task), buffers_(buckets, empty), runs_{0, {}} {
    runs_.lists.resize(buckets);
  }

  /// Adds the record R{fields...}.
  template <class... Fields>
  void add(Part bucket, Fields&&... fields) {
    bytes_ += buffers_[bucket].add(std::forward<Fields>(fields)...);
    if (bytes_ > task_.memory().buffer_bytes()) flush();
  }

  [[nodiscard]] Buckets<R> finish() {
    flush();
    return std::move(runs_);
  }

 private:
  void flush() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      auto [blocks, records] = buffers_[i].take();
      if (records == 0) continue;
      task_.count_written(records, size_of(blocks.in_memory));
      runs_.lists[i].push_back(make_run<R>(task_, std::move(blocks)));
    }
    bytes_ = 0;
  }

  const Task& task_;
  std::vector<Buffer> buffers_;
  /// The memory that all buffers take.
  std::size_t bytes_ = 0;
  Buckets<R> runs_;
};

/// Returns all runs for `bucket` in the order of the tasks that made them.
template <class R>
[[nodiscard]] std::vector<const Run<R>*> runs_for(const std::vector<const Buckets<R>*>& outputs,
                                                  Part bucket) {
  std::vector<const Run<R>*> runs;
  for (const Buckets<R>* output : outputs)
    for (const Run<R>& run : (*output)[bucket]) runs.push_back(&run);
  return runs;
}

}  // namespace starling::flow
