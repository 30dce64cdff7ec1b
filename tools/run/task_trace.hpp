/// Collects what the workers of a flow do when, and writes it as the file of `--trace`: a timeline
/// in Chrome's Trace Event Format, which Perfetto shows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "starling/actor/flow/task_span.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Thread-safe.
class TaskTrace {
 public:
  /// The default for `tasks_max`. A trace of this many tasks takes about 100 MB of memory.
  static constexpr std::size_t tasks_max_default = std::size_t{1} << 20U;

  /// The times of the trace count from `start`. Tasks beyond `tasks_max` are counted only.
  explicit TaskTrace(std::chrono::steady_clock::time_point start,
                     std::size_t tasks_max = tasks_max_default)
      : start_(start), tasks_max_(tasks_max) {}

  void add(const flow::TaskSpan& task);
  /// Returns how many tasks the trace lacks.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Replaces the file `path` as a whole. Each task is an event in the row of a worker. A worker
  /// runs one task at a time; which thread it was is not recorded, so tasks are put into the first
  /// row that is free.
  [[nodiscard]] Result<void> write(const std::string& path, const std::string& flow) const;

 private:
  struct Event {
    /// The position of the stage's operations in `operations_`.
    std::size_t operations = 0;
    std::uint64_t action = 0;
    std::uint32_t stage = 0;
    flow::Part part = 0;
    std::chrono::nanoseconds begin{};
    std::chrono::nanoseconds end{};
    std::uint64_t records = 0;
    bool has_failed = false;
  };

  /// Returns the events in the order in which their tasks began.
  [[nodiscard]] std::vector<Event> sorted() const;

  const std::chrono::steady_clock::time_point start_;
  const std::size_t tasks_max_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<std::string> operations_;
  std::uint64_t dropped_ = 0;
};

}  // namespace starling::program
