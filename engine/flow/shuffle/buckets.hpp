/// Divides the records of a task among the parts of the next stage. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/shuffle/run.hpp"

namespace starling::flow {

/// The output of a shuffling task: for each part of the next stage the runs for it. A part of an
/// output that was received from another node has those for some of these parts.
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

/// Collects records as they come.
template <class R>
class PlainBuffer {
 public:
  /// Adds the record R{fields...}. Returns by how many bytes the buffer has grown.
  template <class... Fields>
  std::size_t add(Fields&&... fields) {
    records_.push_back(R{std::forward<Fields>(fields)...});
    return footprint(records_.back());
  }
  /// For buffers in which records wait.
  static std::size_t finish() noexcept { return 0; }
  [[nodiscard]] std::vector<R> take() { return std::exchange(records_, {}); }

 private:
  std::vector<R> records_;
};

/// Sorts records in an order; equal ones stay in theirs.
template <class Order, class R>
void sort_records(std::vector<R>& records) {
  // Sorting ranks with positions moves fewer bytes than sorting records, and reads fewer of them.
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  order.reserve(records.size());
  for (const R& record : records) order.emplace_back(Order::rank(record), order.size());
  std::ranges::stable_sort(order, [&records](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return Order::less(records[a.second], records[b.second]);
  });
  std::vector<R> sorted;
  sorted.reserve(records.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    constexpr std::size_t ahead = 8;
    if (i + ahead < order.size()) __builtin_prefetch(&records[order[i + ahead].second]);
    sorted.push_back(std::move(records[order[i].second]));
  }
  records = std::move(sorted);
}

/// Sorts records in an order into runs, one buffer for each part of the next stage. When the
/// records take more than Storage::buffer_bytes(), all buffers become runs.
template <class R, class Order, class Buffer = PlainBuffer<R>>
class BucketWriter {
 public:
  BucketWriter(const Task& task, Part buckets, const Buffer& empty = {})
      : task_(task), buffers_(buckets, empty), bytes_(buckets), runs_{0, {}} {
    runs_.lists.resize(buckets);
  }

  /// Adds the record R{fields...}.
  template <class... Fields>
  void add(Part bucket, Fields&&... fields) {
    const std::size_t grown = buffers_[bucket].add(std::forward<Fields>(fields)...);
    bytes_[bucket] += grown;
    total_bytes_ += grown;
    if (total_bytes_ > task_.storage().buffer_bytes()) flush();
  }

  [[nodiscard]] Buckets<R> finish() {
    flush();
    return std::move(runs_);
  }

 private:
  void flush() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      bytes_[i] += buffers_[i].finish();
      std::vector<R> records = buffers_[i].take();
      if (records.empty()) continue;
      task_.count_written(records.size(), bytes_[i]);
      if constexpr (!std::is_same_v<Order, ArrivalOrder>) sort_records<Order>(records);
      runs_.lists[i].push_back(make_run(task_, std::move(records), bytes_[i]));
      bytes_[i] = 0;
    }
    total_bytes_ = 0;
  }

  const Task& task_;
  std::vector<Buffer> buffers_;
  /// The bytes in each buffer, and in all.
  std::vector<std::size_t> bytes_;
  std::size_t total_bytes_ = 0;
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
