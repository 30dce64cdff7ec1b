/// Runs: records in an order, in memory or spilled. A task gives each part of the next stage a list
/// of runs. A finished run is constant, and any thread may read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/task.hpp"
#include "starling/engine/flow/plan/task_memory.hpp"
#include "starling/engine/flow/shuffle/block.hpp"

namespace starling::flow {

/// The bytes of records of the type R.
template <class R>
struct Run : Blocks {};

/// Makes a run of blocks in memory. They stay there if the memory limit allows, and are spilled
/// otherwise.
template <class R>
[[nodiscard]] Run<R> make_run(const Task& task, Blocks blocks) {
  const std::size_t size = size_of(blocks.in_memory);
  blocks.memory = task.memory().reserve(size);
  if (blocks.memory) return {std::move(blocks)};
  Blocks spilled;
  spilled.spilled = SpilledBlocks{task.file()};
  for (const Bytes& block : blocks.in_memory) spilled.spilled.append(block);
  task.count_spilled(size);
  return {std::move(spilled)};
}

/// Reads a run from its first record to its last. Requires: the run outlives the reader.
template <class R>
class RunReader {
 public:
  explicit RunReader(const Run<R>& run) : blocks_(run) { advance(); }
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  /// Returns the record at which the reader is, which the caller may move from; null after the
  /// last.
  [[nodiscard]] R* get() noexcept { return has_record_ ? &record_ : nullptr; }
  [[nodiscard]] const R* get() const noexcept { return has_record_ ? &record_ : nullptr; }

  /// Goes to the next record, which replaces the last.
  void advance() {
    if (bytes_.empty()) bytes_ = blocks_.next();
    has_record_ = !bytes_.empty();
    if (!has_record_) return;
    get_record(bytes_, record_);
    // Prefetches, because the processor cannot foresee reads from many runs in turn. This is not in
    // a function of its own, because gcc 12 drops calls of functions that only prefetch.
    constexpr std::size_t ahead = 192;
    __builtin_prefetch(bytes_.data() + std::min(ahead, bytes_.size()));
  }

 private:
  BlockReader blocks_;
  /// The rest of the current block.
  std::span<const std::byte> bytes_;
  R record_{};
  bool has_record_ = false;
};

}  // namespace starling::flow
