#include "starling/tools/train/trace_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "starling/tools/files/file_output.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The format counts in microseconds.
double in_microseconds(core::Time time) {
  return std::chrono::duration<double, std::micro>{time}.count();
}

/// Returns an event of a worker, without its arguments. A worker is a thread of process 1. It is
/// thread `worker` + 1, because viewers treat thread 0 as the idle one.
Json worker_event(const char* phase, std::string_view name, std::size_t worker) {
  return {{"ph", phase}, {"name", name}, {"pid", 1}, {"tid", worker + 1}};
}

Json process_name(const ResolvedJob& job) {
  const auto& options = job.options.job;
  return {{"ph", "M"},
          {"name", "process_name"},
          {"pid", 1},
          {"args",
           {{"name", fmt::format("{} on {}, {}, {}", job.model_name(), job.data,
                                 core::print(options.mode), barrier::print(options.barrier))}}}};
}

Json thread_name(std::size_t worker) {
  Json event = worker_event("M", "thread_name", worker);
  event["args"]["name"] = "worker " + std::to_string(worker);
  return event;
}

Json interval_event(std::size_t worker, const actor::Interval& interval) {
  Json event = worker_event("X", name_of(interval.activity), worker);
  event["ts"] = in_microseconds(interval.from);
  event["dur"] = in_microseconds(interval.to - interval.from);
  Json args = Json::object();
  if (interval.step > 0) args["step"] = interval.step;
  if (interval.awaited) args["for"] = *interval.awaited;
  event["args"] = std::move(args);
  return event;
}

/// Marks the place in a worker's row from which on it is empty because the trace was full.
Json end_of_record_event(std::size_t worker, core::Time from) {
  Json event = worker_event("i", "not recorded from here on", worker);
  event["ts"] = in_microseconds(from);
  event["s"] = "t";
  return event;
}

Json description(const ResolvedJob& job, const actor::Timeline& timeline) {
  const auto& options = job.options.job;
  Json json{{"version", version()},
            {"model", job.model},
            {"data", job.data},
            {"mode", core::print(options.mode)},
            {"barrier", barrier::print(options.barrier)},
            {"workers", options.workers},
            {"seed", options.seed},
            {"intervals_dropped", timeline.dropped()}};
  if (const auto from = timeline.dropped_from())
    json["dropped_from_s"] = std::chrono::duration<double>{*from}.count();
  return json;
}

/// The text of a trace in pieces, so that it is never whole in memory.
class TraceText {
 public:
  TraceText(const ResolvedJob& job, const actor::Timeline& timeline) : timeline_(timeline) {
    text_ = "{\"displayTimeUnit\": \"ms\",\n\"otherData\": " + dump(description(job, timeline)) +
            ",\n\"traceEvents\": [\n" + dump(process_name(job));
  }

  /// Returns the next piece; empty after the last. It is valid until the next call.
  std::span<const std::byte> next() {
    if (has_returned_text_) text_.clear();
    has_returned_text_ = true;
    constexpr std::size_t piece_size = std::size_t{1} << 18U;
    while (text_.size() < piece_size && worker_ < timeline_.workers().size()) append_next_event();
    if (worker_ == timeline_.workers().size() && !std::exchange(has_ended_, true))
      text_ += "\n]}\n";
    return std::as_bytes(std::span{text_});
  }

 private:
  static std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void append(const Json& event) { text_ += ",\n" + dump(event); }

  void append_next_event() {
    const actor::WorkerTimeline& worker = timeline_.workers()[worker_];
    if (interval_ == 0) append(thread_name(worker_));
    if (interval_ < worker.intervals().size()) {
      append(interval_event(worker_, worker.intervals()[interval_++]));
      return;
    }
    if (const auto from = worker.dropped_from()) append(end_of_record_event(worker_, *from));
    ++worker_;
    interval_ = 0;
  }

  const actor::Timeline& timeline_;
  std::string text_;
  bool has_returned_text_ = false;
  bool has_ended_ = false;
  /// The worker and the interval of the next event.
  std::size_t worker_ = 0;
  std::size_t interval_ = 0;
};

}  // namespace

Result<void> write_trace(const std::string& path, const ResolvedJob& job,
                         const actor::Timeline& timeline) {
  TraceText text{job, timeline};
  return replace_file(path, NextPiece{[&text] { return text.next(); }});
}

std::string dropped_text(const actor::Timeline& timeline) {
  const auto from = timeline.dropped_from();
  if (!from) return {};
  return fmt::format(
      "a trace holds at most {} intervals: from {:.3g} s on, {} of the workers' intervals were not "
      "recorded; valid: a shorter job, or fewer workers",
      timeline.intervals_max(), std::chrono::duration<double>{*from}.count(), timeline.dropped());
}

}  // namespace starling::program
