/// Merges sorted runs into one sorted sequence, with little memory for each spilled run. Not
/// thread-safe.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "starling/engine/flow/shuffle/run.hpp"

namespace starling::flow {

/// The most runs that are merged at once. Each that is spilled takes a block of memory.
inline constexpr std::size_t merged_runs_max = 64;

/// Reads runs in the order `Less`. Equal records come in the order of their runs, and those of one
/// run in their own order. Requires: the runs outlive the reader.
template <class R, class Less>
class MergeReader {
 public:
  explicit MergeReader(const std::vector<const Run<R>*>& runs) {
    for (const Run<R>* run : runs) {
      readers_.emplace_back(*run);
      if (readers_.back().get()) heap_.push_back(readers_.size() - 1);
    }
    std::ranges::make_heap(heap_, comes_later());
  }

  /// Returns the record at which the reader is; null after the last.
  [[nodiscard]] const R* get() const {
    return heap_.empty() ? nullptr : readers_[heap_.front()].get();
  }

  void advance() {
    readers_[heap_.front()].advance();
    // Most often the same run has the next record, or there is only one.
    if (heap_.size() == 1 && readers_[heap_.front()].get()) return;
    std::ranges::pop_heap(heap_, comes_later());
    if (readers_[heap_.back()].get())
      std::ranges::push_heap(heap_, comes_later());
    else
      heap_.pop_back();
  }

 private:
  /// The order of a heap whose front comes first.
  auto comes_later() const {
    return [this](std::size_t a, std::size_t b) {
      const R& left = *readers_[a].get();
      const R& right = *readers_[b].get();
      const Less less;
      if (less(left, right)) return false;
      if (less(right, left)) return true;
      return a > b;
    };
  }

  std::deque<RunReader<R>> readers_;
  std::vector<std::size_t> heap_;
};

/// Merges groups of consecutive runs into spilled runs until at most `merged_runs_max` are left.
/// `made` owns the runs that this makes. Runs in memory count too, so that one rule bounds both
/// memory and files.
template <class R, class Less>
[[nodiscard]] std::vector<const Run<R>*> merge_down(const Task& task,
                                                    std::vector<const Run<R>*> runs,
                                                    std::vector<std::unique_ptr<Run<R>>>& made) {
  while (runs.size() > merged_runs_max && std::ranges::any_of(runs, is_spilled<R>)) {
    std::vector<const Run<R>*> merged;
    for (std::size_t begin = 0; begin < runs.size(); begin += merged_runs_max) {
      const auto first = runs.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = runs.begin() +
                        static_cast<std::ptrdiff_t>(std::min(begin + merged_runs_max, runs.size()));
      MergeReader<R, Less> reader{{first, last}};
      RunSpiller<R> spiller{task};
      for (; reader.get(); reader.advance()) spiller.add(*reader.get());
      made.push_back(std::make_unique<Run<R>>(spiller.finish()));
      merged.push_back(made.back().get());
    }
    runs = std::move(merged);
  }
  return runs;
}

}  // namespace starling::flow
