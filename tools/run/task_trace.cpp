#include "starling/tools/run/task_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "starling/base/json_text.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The trace format counts in microseconds.
double microseconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>{time}.count();
}

std::string dump_event(const Json& json) { return json_text(json); }

/// Viewers treat thread 0 as the idle one.
Json event_of(const char* phase, std::string_view name, std::size_t row) {
  return {{"ph", phase}, {"name", name}, {"pid", 1}, {"tid", row + 1}};
}

}  // namespace

void TaskTrace::add(const flow::TaskSpan& task) {
  const std::lock_guard lock{mutex_};
  if (events_.size() >= tasks_max_) {
    ++dropped_;
    return;
  }
  const std::string& text = task.description->operations;
  const auto known = std::ranges::find(operations_, text);
  const auto operations = static_cast<std::size_t>(known - operations_.begin());
  if (known == operations_.end()) operations_.push_back(text);
  events_.push_back({operations, task.action, task.stage, task.part, task.begin - start_,
                     task.end - start_, task.counts.records_read, task.has_failed});
}

std::uint64_t TaskTrace::dropped() const {
  const std::lock_guard lock{mutex_};
  return dropped_;
}

std::vector<TaskTrace::Event> TaskTrace::sorted() const {
  std::vector<Event> events = events_;
  std::ranges::stable_sort(events, {}, &Event::begin);
  return events;
}

Result<void> TaskTrace::write(const std::string& path, const std::string& flow) const {
  const std::lock_guard lock{mutex_};
  const std::vector<Event> events = sorted();
  std::string text =
      "{\"displayTimeUnit\": \"ms\",\n\"otherData\": " +
      dump_event({{"version", version()}, {"flow", flow}, {"tasks_dropped", dropped_}}) +
      ",\n\"traceEvents\": [\n" +
      dump_event({{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", flow}}}});
  /// By row: the end of its last task.
  std::vector<std::chrono::nanoseconds> ends;
  std::size_t next = 0;
  bool has_begun = false;
  bool has_ended = false;
  // Returns the next piece of the text, so that the whole text is never in memory.
  const NextPiece next_piece = [&]() -> std::span<const std::byte> {
    constexpr std::size_t piece_size = std::size_t{1} << 18U;
    if (std::exchange(has_begun, true)) text.clear();
    for (; next < events.size() && text.size() < piece_size; ++next) {
      const Event& event = events[next];
      const auto free = std::ranges::find_if(ends, [&](auto end) { return end <= event.begin; });
      const auto row = static_cast<std::size_t>(free - ends.begin());
      if (free == ends.end()) {
        Json name = event_of("M", "thread_name", row);
        name["args"]["name"] = "worker " + std::to_string(row);
        text += ",\n" + dump_event(name);
        ends.emplace_back();
      }
      ends[row] = event.end;
      Json task = event_of(
          "X", operations_[event.operations] + ", part " + std::to_string(event.part), row);
      task["ts"] = microseconds_of(event.begin);
      task["dur"] = microseconds_of(event.end - event.begin);
      task["args"] = {{"action", event.action + 1},
                      {"stage", event.stage},
                      {"part", event.part},
                      {"records", event.records}};
      if (event.has_failed) task["args"]["failed"] = true;
      text += ",\n" + dump_event(task);
    }
    if (next == events.size() && !std::exchange(has_ended, true)) text += "\n]}\n";
    return std::as_bytes(std::span{text});
  };
  return replace_file(path, next_piece);
}

}  // namespace starling::program
