#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/tools/advise/step_trace.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The intervals of which a step consists.
constexpr std::array<std::string_view, 5> step_intervals{"plan", "read", "compute", "delay",
                                                         "write"};

/// Adds up the intervals of each step.
class StepSums {
 public:
  /// Reads an event. Ignores those that are not of a step. Returns false if the event is malformed.
  bool add(const Json& event) {
    const auto name = event.find("name");
    if (name == event.end() || !name->is_string()) return false;
    if (std::ranges::find(step_intervals, name->get_ref<const std::string&>()) ==
        step_intervals.end())
      return true;
    const auto worker = event.find("tid");
    const auto duration = event.find("dur");
    const auto arguments = event.find("args");
    if (worker == event.end() || !worker->is_number_unsigned() || worker->get<std::uint64_t>() == 0)
      return false;
    if (duration == event.end() || !duration->is_number() || duration->get<double>() < 0)
      return false;
    if (arguments == event.end() || !arguments->is_object()) return false;
    const auto step = arguments->find("step");
    if (step == arguments->end() || !step->is_number_unsigned()) return false;
    // A worker is thread `worker` + 1 of the trace.
    microseconds_[worker->get<std::uint64_t>() - 1][step->get<std::uint64_t>()] +=
        duration->get<double>();
    return true;
  }

  /// Returns the steps of each worker; without the last of each if the trace is incomplete.
  [[nodiscard]] StepTrace trace(bool is_incomplete) const {
    StepTrace trace;
    for (const auto& [worker, steps] : microseconds_) {
      RecordedWorker& recorded = trace.emplace_back();
      recorded.name = std::to_string(worker);
      for (const auto& [step, microseconds] : steps)
        recorded.durations.push_back(std::max(core::Time{1}, to_duration(microseconds * 1e3)));
      if (is_incomplete) recorded.durations.pop_back();
    }
    return trace;
  }

 private:
  /// By worker and step.
  std::map<std::uint64_t, std::map<std::uint64_t, double>> microseconds_;
};

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
  }
  if (malformed > 0)
    return Error{path + ": event " + std::to_string(malformed) +
                 " is not as train --trace writes it; valid: name, and for the intervals of a step "
                 "tid, dur and args.step"};
  const auto other = whole.find("otherData");
  const bool is_incomplete = other != whole.end() && other->is_object() &&
                             other->contains("intervals_dropped") &&
                             (*other)["intervals_dropped"] != 0;
  StepTrace trace = sums.trace(is_incomplete);
  if (auto valid = check_step_trace(trace); !valid) return std::move(valid).error().within(path);
  return trace;
}

}  // namespace starling::program
