/// Runs: records in an order, in memory or spilled. A task gives each part of the next stage a list
/// of runs. A finished run is constant, and any thread may read it.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/storage.hpp"
#include "starling/engine/flow/plan/task.hpp"
#include "starling/engine/flow/shuffle/block.hpp"
#include "starling/engine/flow/values/footprint.hpp"

namespace starling::flow {

template <class R>
struct Run {
  /// Empty if the run is spilled.
  std::vector<R> records;
  /// Null if the run is spilled.
  std::shared_ptr<Reservation> memory;
  SpilledBlocks spilled;
};

template <class R>
[[nodiscard]] bool is_spilled(const Run<R>* run) {
  return !run->spilled.blocks.empty();
}

/// Writes records one after another to the file of a task.
template <class R>
class RunSpiller {
 public:
  explicit RunSpiller(const Task& task) : task_(task), blocks_(task.file()) {}

  void add(const R& record) {
    put(blocks_.buffer(), record);
    blocks_.end_record();
  }
  [[nodiscard]] Run<R> finish() {
    Run<R> run{.records = {}, .memory = {}, .spilled = blocks_.finish()};
    for (const Block& block : run.spilled.blocks) task_.count_spilled(block.size);
    return run;
  }

 private:
  const Task& task_;
  BlockWriter blocks_;
};

/// Makes a run that stays in memory if the storage has enough, and is spilled otherwise.
template <class R>
[[nodiscard]] Run<R> make_run(const Task& task, std::vector<R> records, std::size_t bytes) {
  records.shrink_to_fit();
  if (std::shared_ptr<Reservation> memory = task.storage().reserve(bytes))
    return {.records = std::move(records), .memory = std::move(memory), .spilled = {}};
  RunSpiller<R> spiller{task};
  for (const R& record : records) spiller.add(record);
  return spiller.finish();
}

/// Reads a run from its first record to its last. Requires: the run outlives the reader.
template <class R>
class RunReader {
 public:
  explicit RunReader(const Run<R>& run) : records_(run.records), blocks_(run.spilled) { advance(); }
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  /// Returns the record at which the reader is; null after the last.
  [[nodiscard]] const R* get() const noexcept { return current_; }

  /// Goes to the next record; get()'s last pointer may become invalid.
  void advance() {
    if (!records_.empty()) {
      // The processor cannot foresee reads from many runs in turn. Not in a function of its own,
      // because gcc 12 drops calls of functions that only prefetch.
      constexpr std::size_t ahead = 4;
      if (records_.size() > 2 * ahead) {
        __builtin_prefetch(&records_[2 * ahead]);
        if constexpr (requires(const R& record) { record.key.data(); }) {
          __builtin_prefetch(records_[ahead].key.data());
          __builtin_prefetch(records_[ahead].key.data() + records_[ahead].key.size());
        }
      }
      current_ = &records_.front();
      records_ = records_.subspan(1);
      return;
    }
    if (bytes_.empty()) bytes_ = blocks_.next();
    current_ = nullptr;
    if (bytes_.empty()) return;
    flow::get(bytes_, decoded_);
    current_ = &decoded_;
  }

 private:
  /// The rest of a run in memory.
  std::span<const R> records_;
  /// The rest of a spilled run: its blocks, and the bytes of the current one.
  BlockReader blocks_;
  std::span<const std::byte> bytes_;
  R decoded_{};
  const R* current_ = nullptr;
};

}  // namespace starling::flow
