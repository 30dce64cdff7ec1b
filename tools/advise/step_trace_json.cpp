#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/tools/advise/step_trace.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Returns true if `name` is the name of an activity that is part of a step.
bool is_of_step(std::string_view name) {
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(actor::last_of(actor::Activity{})); ++i)
    if (const auto activity = static_cast<actor::Activity>(i); actor::name_of(activity) == name)
      return actor::is_of_step(activity);
  return false;
}

/// Adds up the intervals of each step. Leaves out steps of which intervals are missing.
class StepSums {
 public:
  /// Reads an event, and ignores it unless it is an interval of a worker. Returns false if the
  /// event is malformed.
  bool add(const Json& event) {
    const auto name = event.find("name");
    if (name == event.end() || !name->is_string()) return false;
    const bool belongs_to_step = is_of_step(name->get_ref<const std::string&>());
    const auto kind = event.find("ph");
    if (!belongs_to_step && (kind == event.end() || *kind != "X")) return true;
    const auto worker = event.find("tid");
    const auto begin = event.find("ts");
    const auto duration = event.find("dur");
    const auto arguments = event.find("args");
    if (worker == event.end() || !worker->is_number_unsigned() || worker->get<std::uint64_t>() == 0)
      return false;
    for (const auto& number : {begin, duration})
      if (number == event.end() || !number->is_number() || number->get<double>() < 0) return false;
    // A worker is thread `worker` + 1 of the trace.
    auto& rows = rows_[worker->get<std::uint64_t>() - 1][process_of(event)];
    const bool begins_anew = !rows.empty() && *name == "start" &&
                             std::abs(begin->get<double>() - *rows.back().end) >= gap_min_us;
    if (rows.empty() || begins_anew) rows.emplace_back();
    Row& row = rows.back();
    const bool follows =
        row.end ? std::abs(begin->get<double>() - *row.end) < gap_min_us : *name == "start";
    row.end = begin->get<double>() + duration->get<double>();
    if (!follows) row.incomplete.insert(row.step);
    if (!belongs_to_step) return true;
    if (arguments == event.end() || !arguments->is_object()) return false;
    const auto step = arguments->find("step");
    if (step == arguments->end() || !step->is_number_unsigned()) return false;
    row.step = step->get<std::uint64_t>();
    if (!follows) row.incomplete.insert(row.step);
    row.microseconds[row.step] += duration->get<double>();
    return true;
  }

  /// Returns the complete steps of each worker. The last step of an incarnation may be incomplete.
  /// It is left out if another incarnation follows in the same process, or if `lacks_ends`.
  [[nodiscard]] StepTrace trace(bool lacks_ends) const {
    StepTrace trace;
    for (const auto& [worker, processes] : rows_) {
      RecordedWorker recorded{.name = std::to_string(worker), .durations = {}};
      bool has_steps = false;
      for (const auto& [process, rows] : processes)
        for (const Row& row : rows) {
          has_steps = has_steps || !row.microseconds.empty();
          add_steps(row, lacks_ends || &row != &rows.back(), recorded);
        }
      if (has_steps) trace.push_back(std::move(recorded));
    }
    return trace;
  }

 private:
  /// In microseconds. If at least this much time lies between two intervals of a worker, others are
  /// missing between them.
  static constexpr double gap_min_us = 0.01;

  /// The intervals of one incarnation of a worker in one process.
  struct Row {
    /// By step: the sum of its intervals.
    std::map<std::uint64_t, double> microseconds{};
    /// The steps before and after a gap, or at which the row begins without a `start`.
    std::set<std::uint64_t> incomplete{};
    /// The end of the row's last interval, in microseconds, and the last step of which the row has
    /// an interval.
    std::optional<double> end{};
    std::uint64_t step = 0;
  };

  /// Returns the process that an event names: the node of a job on nodes. 0 if it names none.
  static std::uint64_t process_of(const Json& event) {
    const auto process = event.find("pid");
    return process != event.end() && process->is_number_unsigned() ? process->get<std::uint64_t>()
                                                                   : 0;
  }

  /// Adds the durations of the complete steps of `row`.
  static void add_steps(const Row& row, bool lacks_end, RecordedWorker& recorded) {
    if (row.microseconds.empty()) return;
    const std::uint64_t last = row.microseconds.rbegin()->first;
    for (const auto& [step, microseconds] : row.microseconds)
      if (!row.incomplete.contains(step) && !(lacks_end && step == last))
        recorded.durations.push_back(std::max(core::Time{1}, to_duration(microseconds * 1e3)));
  }

  /// By worker, and by process. A worker that was restarted has rows on several nodes, and may make
  /// some of its steps again.
  std::map<std::uint64_t, std::map<std::uint64_t, std::vector<Row>>> rows_;
};

/// Returns the text at `key` in the description of the job; empty if there is none.
std::string text_of(const Json& job, const char* key) {
  const auto at = job.find(key);
  return at != job.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

std::size_t line_at(std::string_view text, std::size_t byte) {
  return 1 + static_cast<std::size_t>(
                 std::ranges::count(text.substr(0, std::min(byte, text.size())), '\n'));
}

}  // namespace

Result<StepTrace> parse_step_json(std::string_view text, const std::string& path) {
  StepSums sums;
  std::size_t events = 0;
  std::size_t malformed = 0;
  // Drops each event once it is counted, so that a large trace is never whole in memory.
  const auto count_event = [&](int depth, Json::parse_event_t kind, Json& value) {
    if (depth != 2 || kind != Json::parse_event_t::object_end) return true;
    ++events;
    if (!sums.add(value) && malformed == 0) malformed = events;
    return false;
  };
  Json whole;
  try {
    whole = Json::parse(text, count_event);
  } catch (const Json::parse_error& fault) {
    const bool is_cut = fault.byte >= text.size();
    return Error{path + ":" + std::to_string(line_at(text, fault.byte)) + ": " +
                 (is_cut ? "the JSON has no end: the file is cut off" : "is not JSON") +
                 "; valid: a trace that train --trace wrote"};
  } catch (const Json::out_of_range&) {
    return Error{path +
                 ": has a number that is too large; valid: a trace that train --trace wrote"};
  }
  if (malformed > 0)
    return Error{path + ": event " + std::to_string(malformed) +
                 " is not as train --trace writes it; valid: name, and for the intervals of a step "
                 "tid, ts, dur and args.step"};
  const auto other = whole.find("otherData");
  if (other != whole.end() && other->is_object())
    if (auto valid = check_recorded_job(text_of(*other, "barrier"), text_of(*other, "batch"));
        !valid)
      return std::move(valid).error().within(path);
  // A node that died did not hand over its last intervals.
  const bool lacks_ends =
      other != whole.end() && other->is_object() &&
      (other->contains("nodes") || other->value("intervals_dropped", Json{0}) != 0);
  StepTrace trace = sums.trace(lacks_ends);
  if (auto valid = check_step_trace(trace); !valid) return std::move(valid).error().within(path);
  return trace;
}

}  // namespace starling::program
