/// How far the stages of an action are. Plain values; any thread.
#pragma once

#include <cstdint>
#include <tuple>

#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// Sums over the tasks that are done. Failed attempts do not count.
struct TaskCounts {
  /// Records that came from the sources of the stage: files, collections, or other stages.
  std::uint64_t records_read = 0;
  /// Records that were shuffled or cached, after equal keys were combined, and their bytes in
  /// memory or on the disk.
  std::uint64_t records_written = 0;
  std::uint64_t bytes_written = 0;
  /// Bytes that were written to spill files.
  std::uint64_t bytes_spilled = 0;

  TaskCounts& operator+=(const TaskCounts& other) noexcept {
    records_read += other.records_read;
    records_written += other.records_written;
    bytes_written += other.bytes_written;
    bytes_spilled += other.bytes_spilled;
    return *this;
  }
  static constexpr auto fields(auto& m) {
    return std::tie(m.records_read, m.records_written, m.bytes_written, m.bytes_spilled);
  }
};

struct StageProgress {
  /// The number of the action in its engine, from 0, and of the stage in the action's plan.
  std::uint64_t action = 0;
  std::uint32_t stage = 0;
  /// Valid during the call that gets this value.
  const StageDescription* description = nullptr;
  Part parts_done = 0;
  TaskCounts counts;
};

}  // namespace starling::flow
