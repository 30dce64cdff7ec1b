#include "starling/tools/advise/step_trace.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/tools/report/statistics.hpp"

namespace starling::program {
namespace {

constexpr std::string_view csv_head = "worker,step,seconds";
constexpr double seconds_max = 86'400;
constexpr std::size_t name_size_max = 64;

std::string place(const std::string& path, std::size_t line) {
  return path + ":" + std::to_string(line);
}

/// Collects the rows of a CSV file.
class CsvReader {
 public:
  /// Reads the row in a line. Returns an Error without the line's number.
  Result<void> read_row(std::string_view line) {
    const auto cells = split(line, ',');
    if (cells.size() != 3)
      return Error{"has " + print_count(cells.size(), "cell") + "; valid: three, like a,1,0.25"};
    const std::string_view name = trim(cells[0]);
    if (name.empty() || name.size() > name_size_max)
      return Error{"worker " + quote(name) + "; valid: a name of 1 to " +
                   std::to_string(name_size_max) + " bytes"};
    const auto step = parse_count(trim(cells[1]));
    if (!step) return Error{"step: " + step.error().message};
    const auto seconds = parse_number(trim(cells[2]));
    if (!seconds || !(*seconds > 0 && *seconds <= seconds_max))
      return Error{"seconds: " + quote(trim(cells[2])) +
                   "; valid: a number above 0 and <= " + print_number(seconds_max)};
    return add(std::string{name}, *step, *seconds);
  }

  [[nodiscard]] StepTrace trace() && { return std::move(trace_); }

 private:
  Result<void> add(std::string name, std::uint64_t step, double seconds) {
    const auto [at, is_new] = index_.try_emplace(name, trace_.size());
    if (is_new) {
      trace_.push_back({.name = std::move(name)});
      last_step_.push_back(step);
    } else if (step <= last_step_[at->second]) {
      return Error{"step " + std::to_string(step) + " of worker " + quote(name) +
                   " comes after its step " + std::to_string(last_step_[at->second]) +
                   "; valid: steps that rise, each once"};
    }
    last_step_[at->second] = step;
    const core::Time duration = to_duration(seconds * 1e9);
    trace_[at->second].durations.push_back(std::max(core::Time{1}, duration));
    return {};
  }

  StepTrace trace_;
  std::map<std::string, std::size_t> index_;
  /// The last step of each worker, by the worker's index in `trace_`.
  std::vector<std::uint64_t> last_step_;
};

}  // namespace

std::vector<core::Time> complete_steps(std::span<const actor::Interval> intervals) {
  std::map<core::Step, core::Time> times;
  std::set<core::Step> incomplete;
  const actor::Interval* former = nullptr;
  std::vector<core::Time> complete;
  const auto take_steps = [&] {
    if (former != nullptr) incomplete.insert(former->step);
    for (const auto& [step, time] : times)
      if (!incomplete.contains(step)) complete.push_back(std::max(core::Time{1}, time));
    times.clear();
    incomplete.clear();
  };
  for (const actor::Interval& interval : intervals) {
    const bool follows = former != nullptr ? former->to == interval.from
                                           : interval.activity == actor::Activity::start;
    // A worker that begins anew may make some of its steps again.
    if (!follows && interval.activity == actor::Activity::start) take_steps();
    if (!follows && former != nullptr) incomplete.insert(former->step);
    if (!follows) incomplete.insert(interval.step);
    if (actor::is_of_step(interval.activity)) times[interval.step] += interval.to - interval.from;
    former = &interval;
  }
  take_steps();
  return complete;
}

Result<void> check_recorded_job(const std::string& barrier, const std::string& batch) {
  const std::string valid = ", so slow workers look as fast as others; valid: a job with another ";
  if (barrier == "absp")
    return Error{"has barrier absp, which cuts the steps of slow workers short" + valid +
                 "barrier"};
  if (batch.starts_with("dynamic"))
    return Error{"has batch " + batch + ", which gives slow workers less to compute" + valid +
                 "batch"};
  return {};
}

Result<void> check_step_trace(const StepTrace& trace) {
  if (trace.size() < 2)
    return Error{"has steps of " + print_count(trace.size(), "worker") +
                 "; valid: 2 workers or more, because one alone waits for no other"};
  if (trace.size() > recorded_workers_max)
    return Error{"has steps of " + print_count(trace.size(), "worker") + "; valid: at most " +
                 std::to_string(recorded_workers_max) +
                 ", because every message is simulated; `sim --step-time trace:FILE` simulates "
                 "more workers"};
  for (const RecordedWorker& worker : trace)
    if (worker.durations.size() < recorded_steps_min)
      return Error{"has " + print_count(worker.durations.size(), "step") + " of worker " +
                   quote(worker.name) + "; valid: " + std::to_string(recorded_steps_min) +
                   " or more of each worker"};
  return {};
}

Result<StepTrace> parse_step_csv(std::string_view text, const std::string& path) {
  CsvReader reader;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return Error{place(path, line_number) +
                   ": the line has no end: the file is cut off; valid: a new line after each row"};
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (line.empty() && trim(text).empty()) break;
    if (line_number == 1) {
      if (line != csv_head)
        return Error{place(path, 1) + ": " + quote(line) + "; valid: the head " +
                     std::string{csv_head} + ", or a trace that train --trace wrote"};
      continue;
    }
    if (auto read = reader.read_row(line); !read)
      return std::move(read).error().within(place(path, line_number));
  }
  StepTrace trace = std::move(reader).trace();
  if (auto valid = check_step_trace(trace); !valid) return std::move(valid).error().within(path);
  return trace;
}

Result<StepTrace> read_step_trace(const std::string& path) {
  constexpr std::size_t bytes_max = std::size_t{1} << 28U;
  const auto text = read_text(path, bytes_max, "fewer steps: some hundreds of each worker suffice");
  if (!text) return text.error();
  if (text->starts_with("\xef\xbb\xbf"))
    return Error{path + ": begins with a byte order mark; valid: text in UTF-8 without one"};
  if (trim(*text).empty())
    return Error{path + ": is empty; valid: the head " + std::string{csv_head} +
                 " and a row for each step"};
  if (trim(*text).starts_with('['))
    return Error{path +
                 ": is an array; valid: a trace that train --trace wrote, which is an object"};
  return trim(*text).starts_with('{') ? parse_step_json(*text, path) : parse_step_csv(*text, path);
}

StepTimes resampled(std::shared_ptr<const StepTrace> trace) {
  struct Position {
    std::size_t next = 0;
    std::size_t left = 0;
  };
  return [trace = std::move(trace), positions = std::vector<Position>{}](
             core::MemberId worker, core::Step, Random& random) mutable {
    positions.resize(trace->size());
    const std::vector<core::Time>& recorded = (*trace)[worker].durations;
    Position& at = positions[worker];
    if (at.left == 0) at = {random.below(recorded.size()), block_steps};
    --at.left;
    const core::Time time = recorded[at.next];
    at.next = (at.next + 1) % recorded.size();
    return time;
  };
}

std::vector<RecordedFigures> figures_of(const StepTrace& trace) {
  std::vector<RecordedFigures> figures;
  double least = std::numeric_limits<double>::infinity();
  for (const RecordedWorker& worker : trace) {
    std::vector<double> seconds;
    seconds.reserve(worker.durations.size());
    for (const core::Time duration : worker.durations) seconds.push_back(in_seconds(duration));
    const Summary summary = compute_statistics(seconds);
    figures.push_back({.mean_s = summary.mean, .jitter = summary.sd / summary.mean});
    least = std::min(least, summary.mean);
  }
  for (RecordedFigures& worker : figures) worker.slowness = worker.mean_s / least;
  return figures;
}

}  // namespace starling::program
