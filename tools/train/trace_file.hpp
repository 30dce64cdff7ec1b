/// Writes the file of `--trace`: what each worker did when, as a timeline that Perfetto and
/// chrome://tracing show. Its format is the Trace Event Format of Chrome. Any thread, one at a
/// time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/actor/job/timeline.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The intervals of one worker, in the order of time.
struct TraceRow {
  core::MemberId worker = 0;
  std::span<const actor::Interval> intervals = {};
};

/// A time from which on intervals are missing. The mark is shown in the row of `worker`, or in all
/// rows of the process if `worker` is absent.
struct TraceMark {
  core::Time at{};
  std::string text;
  std::optional<core::MemberId> worker = std::nullopt;
};

/// How well a node's clock is known.
struct TraceClock {
  /// By how much the node's times may be wrong against those of the process that collected them.
  core::Time error{};
  /// A lower bound of how far the two clocks have drifted apart while the job ran.
  core::Time drift{};
};

/// The workers of one process.
struct TraceProcess {
  std::string name;
  /// The time to add to the process's times to get those of the trace.
  core::Time shift{};
  std::vector<TraceRow> rows = {};
  /// The marks, whose times are also those of the process.
  std::vector<TraceMark> marks = {};
  /// Absent if the job ran in this process alone.
  std::optional<TraceClock> clock = std::nullopt;
  /// The number of intervals that were not recorded or not fetched.
  std::uint64_t dropped = 0;
};

struct Trace {
  std::vector<TraceProcess> processes = {};
  /// The number of intervals of all processes that were not recorded or not fetched.
  std::uint64_t dropped = 0;
  /// The first time at which an interval is missing; nullopt if no interval is missing.
  std::optional<core::Time> dropped_from = std::nullopt;
  /// Says which intervals are missing, and what to do about it; empty if no interval is
  /// missing.
  std::string warning = {};
};

/// Returns the trace of a job in one process, which refers to `timeline`.
[[nodiscard]] Trace trace_of(const ResolvedJob& job, const actor::Timeline& timeline);

/// Replaces the file `path` as a whole.
[[nodiscard]] Result<void> write_trace(const std::string& path, const ResolvedJob& job,
                                       const Trace& trace);

}  // namespace starling::program
