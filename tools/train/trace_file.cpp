#include "starling/tools/train/trace_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/json_text.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The trace format counts in microseconds.
double in_microseconds(core::Time time) {
  return std::chrono::duration<double, std::micro>{time}.count();
}

/// Returns an event of process number `process`, without its arguments. Numbers begin with 0 here
/// and with 1 in the file.
Json process_event(const char* phase, std::string_view name, std::size_t process) {
  return {{"ph", phase}, {"name", name}, {"pid", process + 1}};
}

/// Returns an event of a worker, without its arguments. A worker is thread `worker` + 1 of its
/// process, because viewers treat thread 0 as the idle one.
Json worker_event(const char* phase, std::string_view name, std::size_t process,
                  core::MemberId worker) {
  Json event = process_event(phase, name, process);
  event["tid"] = worker + 1;
  return event;
}

Json process_name(std::size_t number, const TraceProcess& process) {
  Json event = process_event("M", "process_name", number);
  event["args"]["name"] = process.name;
  return event;
}

Json thread_name(std::size_t process, core::MemberId worker) {
  Json event = worker_event("M", "thread_name", process, worker);
  event["args"]["name"] = "worker " + std::to_string(worker);
  return event;
}

Json interval_event(std::size_t process, core::MemberId worker, const actor::Interval& interval,
                    core::Time shift) {
  Json event = worker_event("X", name_of(interval.activity), process, worker);
  event["ts"] = in_microseconds(interval.from + shift);
  event["dur"] = in_microseconds(interval.to - interval.from);
  Json args = Json::object();
  if (interval.step > 0) args["step"] = interval.step;
  if (interval.awaited) args["for"] = *interval.awaited;
  event["args"] = std::move(args);
  return event;
}

/// The scope of the mark is a row ("t" for thread) or all rows of a process ("p").
Json mark_event(std::size_t process, const TraceMark& mark, core::Time shift) {
  Json event = mark.worker ? worker_event("i", mark.text, process, *mark.worker)
                           : process_event("i", mark.text, process);
  event["ts"] = in_microseconds(mark.at + shift);
  event["s"] = mark.worker ? "t" : "p";
  return event;
}

Json describe(std::size_t number, const TraceProcess& process) {
  return {{"pid", number + 1},
          {"name", process.name},
          {"clock_error_us", in_microseconds(process.clock->error)},
          {"clock_drift_us", in_microseconds(process.clock->drift)},
          {"intervals_dropped", process.dropped}};
}

Json description(const ResolvedJob& job, const Trace& trace) {
  const auto& options = job.options.job;
  Json json{{"version", version()},
            {"model", job.model},
            {"data", job.data},
            {"mode", core::print(options.mode)},
            {"barrier", barrier::print(options.barrier)},
            {"workers", options.workers},
            {"batch", actor::print_batch(job.options)},
            {"seed", options.seed},
            {"intervals_dropped", trace.dropped}};
  if (trace.dropped_from)
    json["dropped_from_s"] = std::chrono::duration<double>{*trace.dropped_from}.count();
  for (std::size_t i = 0; i < trace.processes.size(); ++i)
    if (trace.processes[i].clock) json["nodes"].push_back(describe(i, trace.processes[i]));
  return json;
}

/// The text of a trace in pieces, so that it is never whole in memory.
class TraceText {
 public:
  TraceText(const ResolvedJob& job, const Trace& trace) : trace_(trace) {
    text_ = "{\"displayTimeUnit\": \"ms\",\n\"otherData\": " + dump(description(job, trace)) +
            ",\n\"traceEvents\": [";
  }

  /// Returns the next piece; empty after the last. It is valid until the next call.
  std::span<const std::byte> next() {
    if (has_returned_text_) text_.clear();
    has_returned_text_ = true;
    constexpr std::size_t piece_size = std::size_t{1} << 18U;
    while (text_.size() < piece_size && process_ < trace_.processes.size()) append_next_event();
    if (process_ == trace_.processes.size() && !std::exchange(has_ended_, true)) text_ += "\n]}\n";
    return std::as_bytes(std::span{text_});
  }

 private:
  static std::string dump(const Json& json) { return json_text(json); }

  void append(const Json& event) {
    text_ += std::exchange(is_first_, false) ? "\n" : ",\n";
    text_ += dump(event);
  }

  void append_next_event() {
    const TraceProcess& process = trace_.processes[process_];
    if (row_ == 0 && interval_ == 0) append(process_name(process_, process));
    if (row_ == process.rows.size()) {
      for (const TraceMark& mark : process.marks) append(mark_event(process_, mark, process.shift));
      ++process_;
      row_ = 0;
      return;
    }
    const TraceRow& row = process.rows[row_];
    if (interval_ == 0) append(thread_name(process_, row.worker));
    if (interval_ < row.intervals.size())
      append(interval_event(process_, row.worker, row.intervals[interval_], process.shift));
    if (++interval_ < row.intervals.size()) return;
    ++row_;
    interval_ = 0;
  }

  const Trace& trace_;
  std::string text_;
  bool has_returned_text_ = false;
  bool has_ended_ = false;
  bool is_first_ = true;
  /// The position of the next event: its process, its row, and its interval in the row.
  std::size_t process_ = 0;
  std::size_t row_ = 0;
  std::size_t interval_ = 0;
};

}  // namespace

Trace trace_of(const ResolvedJob& job, const actor::Timeline& timeline) {
  const auto& options = job.options.job;
  TraceProcess process{fmt::format("{} on {}, {}, {}", job.model_name(), job.data,
                                   core::print(options.mode), barrier::print(options.barrier))};
  for (const actor::WorkerTimeline& worker : timeline.workers()) {
    const auto id = static_cast<core::MemberId>(process.rows.size());
    process.rows.push_back({id, worker.intervals()});
    if (const auto from = worker.dropped_from())
      process.marks.push_back({*from, "not recorded from here on", id});
  }
  Trace trace{.processes = {std::move(process)},
              .dropped = timeline.dropped(),
              .dropped_from = timeline.dropped_from()};
  if (trace.dropped_from)
    trace.warning = fmt::format(
        "a trace holds at most {} intervals: from {:.3g} s on, {} of the workers' intervals were "
        "not recorded; valid: a shorter job, or fewer workers",
        timeline.intervals_max(), std::chrono::duration<double>{*trace.dropped_from}.count(),
        trace.dropped);
  return trace;
}

Result<void> write_trace(const std::string& path, const ResolvedJob& job, const Trace& trace) {
  TraceText text{job, trace};
  return replace_file(path, NextPiece{[&text] { return text.next(); }});
}

}  // namespace starling::program
