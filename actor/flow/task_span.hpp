/// The time that a task of a flow in one process takes. Plain values; any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "starling/engine/flow/plan/progress.hpp"

namespace starling::flow {

/// A task that a thread has run, whether or not it has succeeded.
struct TaskSpan {
  /// As in StageProgress.
  std::uint64_t action = 0;
  std::uint32_t stage = 0;
  const StageDescription* description = nullptr;
  Part part = 0;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  TaskCounts counts;
  bool has_failed = false;
};

}  // namespace starling::flow
