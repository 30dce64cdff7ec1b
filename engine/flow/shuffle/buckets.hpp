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
  /// Returns by how many bytes the buffer has grown.
  std::size_t add(R record) {
    const std::size_t bytes = footprint(record);
    records_.push_back(std::move(record));
    return bytes;
  }
  [[nodiscard]] std::vector<R> take() { return std::exchange(records_, {}); }

 private:
  std::vector<R> records_;
};

/// Sorts records by `Less` into runs, one buffer for each part of the next stage. When the records
/// take more than Storage::buffer_bytes(), all buffers become runs.
template <class R, class Less, class Buffer = PlainBuffer<R>>
class BucketWriter {
 public:
  BucketWriter(const Task& task, Part buckets, const Buffer& empty = {})
      : task_(task), buffers_(buckets, empty), bytes_(buckets), runs_{0, {}} {
    runs_.lists.resize(buckets);
  }

  void add(Part bucket, R record) {
    const std::size_t grown = buffers_[bucket].add(std::move(record));
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
      std::vector<R> records = buffers_[i].take();
      if (records.empty()) continue;
      task_.count_written(records.size(), bytes_[i]);
      if constexpr (!std::is_same_v<Less, ArrivalOrder>) std::ranges::stable_sort(records, Less{});
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
