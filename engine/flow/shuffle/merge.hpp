/// Merges sorted runs into one sorted sequence, with little memory for each spilled run. Not
/// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "starling/engine/flow/shuffle/run.hpp"

namespace starling::flow {

/// The most runs that are merged at once. Each that is spilled takes a block of memory.
inline constexpr std::size_t merged_runs_max = 64;

/// Reads runs in an order. Equal records come in the order of their runs, and those of one run in
/// their own order. Requires: the runs outlive the reader.
template <class R, class Order>
class MergeReader {
 public:
  explicit MergeReader(const std::vector<const Run<R>*>& runs) {
    for (const Run<R>* run : runs) {
      RunReader<R>& reader = readers_.emplace_back(*run);
      if (reader.get()) heap_.push_back({Order::rank(*reader.get()), readers_.size(), &reader});
    }
    for (std::size_t i = heap_.size() / 2; i > 0; --i) sift_down(i - 1);
  }

  /// Returns the record at which the reader is, which the caller may move from; null after the
  /// last.
  [[nodiscard]] R* get() const { return heap_.empty() ? nullptr : heap_.front().reader->get(); }

  void advance() {
    Head& head = heap_.front();
    head.reader->advance();
    if (const R* record = head.reader->get()) {
      head.rank = Order::rank(*record);
    } else {
      head = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) sift_down(0);
  }

 private:
  /// A run that has records left.
  struct Head {
    /// The rank of its next record.
    std::uint64_t rank = 0;
    std::size_t position = 0;
    RunReader<R>* reader = nullptr;

    [[nodiscard]] bool comes_before(const Head& other) const {
      if (rank != other.rank) return rank < other.rank;
      const R& record = *reader->get();
      const R& other_record = *other.reader->get();
      return position < other.position ? !Order::less(other_record, record)
                                       : Order::less(record, other_record);
    }
  };

  /// Moves the head at `i` down the heap until it comes before those below it.
  void sift_down(std::size_t i) {
    const Head moved = heap_[i];
    for (;;) {
      std::size_t below = 2 * i + 1;
      if (below >= heap_.size()) break;
      if (below + 1 < heap_.size() && heap_[below + 1].comes_before(heap_[below])) ++below;
      if (!heap_[below].comes_before(moved)) break;
      heap_[i] = heap_[below];
      i = below;
    }
    heap_[i] = moved;
  }

  std::deque<RunReader<R>> readers_;
  /// A binary heap; the head that comes first is in front.
  std::vector<Head> heap_;
};

/// Merges groups of consecutive runs into spilled runs until at most `merged_runs_max` are left.
/// Merges no more runs than necessary, and none if all are in memory. `made` owns the merged runs.
/// Runs in memory count too, so that one rule bounds both memory and files.
template <class R, class Order>
[[nodiscard]] std::vector<const Run<R>*> merge_down(
    const Task& task, std::vector<const Run<R>*> runs,
    std::vector<std::unique_ptr<const Run<R>>>& made) {
  const auto is_spilled = [](const Run<R>* run) { return run->spilled.size() > 0; };
  while (runs.size() > merged_runs_max && std::ranges::any_of(runs, is_spilled)) {
    std::size_t excess = runs.size() - merged_runs_max;
    std::vector<const Run<R>*> left;
    std::span<const Run<R>* const> rest = runs;
    while (!rest.empty()) {
      const std::size_t size = std::min({merged_runs_max, excess + 1, rest.size()});
      const auto group = rest.first(size);
      rest = rest.subspan(size);
      if (size == 1) {
        left.push_back(group.front());
        continue;
      }
      MergeReader<R, Order> reader{{group.begin(), group.end()}};
      BlockWriter writer{task.file()};
      for (; reader.get(); reader.advance()) {
        task.count_made();
        writer.add(*reader.get());
      }
      made.push_back(std::make_unique<const Run<R>>(Run<R>{writer.finish()}));
      task.count_spilled(made.back()->spilled.bytes());
      left.push_back(made.back().get());
      excess -= size - 1;
    }
    runs = std::move(left);
  }
  return runs;
}

}  // namespace starling::flow
