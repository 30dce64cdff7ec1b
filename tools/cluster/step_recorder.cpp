#include "starling/tools/cluster/step_recorder.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/cluster/follow/trace_collector.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds poll_interval = 200ms;

/// Returns the settings with `from` renamed to `to`, the name of this option in other commands.
Settings connection_of(Settings settings) {
  for (Setting& setting : settings)
    if (setting.key == "from") setting.key = "to";
  return settings;
}

Result<std::chrono::nanoseconds> recording_time(const Settings& settings) {
  const std::string text = text_of(settings, "record");
  if (text.empty()) return std::chrono::nanoseconds{30s};
  auto time = parse_duration(text);
  if (!time || *time < 1s || *time > 1h)
    return Error{location_of(settings, "record") + ": " + quote(text) +
                 "; valid: 1s to 1h, as in 30s"};
  return time;
}

std::string setting_of(const JobSnapshot& job, const std::string& key) {
  for (const auto& [name, text] : job.settings)
    if (name == key) return text;
  return {};
}

Trace trace_of(const TraceCollector& collector) {
  return collector.traces().trace([](wire::NodeId node) { return std::to_string(node); });
}

/// Follows the job and collects what its workers do for `time`. Returns their steps; an Error if no
/// node answers any more.
Result<StepTrace> collect(Access& access, wire::JobId id, std::chrono::nanoseconds time,
                          bool is_quiet) {
  Follower follower{*access.client, access.seed, id};
  TraceCollector collector{*access.client, id};
  // The first poll asks only the seed node, and learns the others from it.
  (void)follower.poll();
  if (auto report = follower.poll(true); !report) return std::move(report).error();
  // Discards the intervals that the nodes have kept from before the recording.
  for (bool is_full = true; is_full; collector.discard()) {
    collector.collect_rest(follower.answering_nodes());
    is_full = collector.traces().is_full();
  }
  Display display{is_quiet};
  const auto begin = std::chrono::steady_clock::now();
  for (bool goes_on = true; goes_on;) {
    std::this_thread::sleep_for(poll_interval);
    const auto passed = std::chrono::steady_clock::now() - begin;
    auto report = follower.poll();
    if (!report && !follower.is_dropped()) return std::move(report).error();
    goes_on = passed < time && report && !report->is_done && report->failure.empty();
    collector.collect(follower.answering_nodes());
    display.show(
        "recording steps: " + print_duration(std::chrono::floor<std::chrono::seconds>(passed)) +
        " of " + print_duration(time));
  }
  collector.collect_rest(follower.answering_nodes());
  const Trace trace = trace_of(collector);
  // A worker that was restarted on another node has rows in the traces of both nodes.
  std::map<core::MemberId, RecordedWorker> workers;
  for (const TraceProcess& process : trace.processes)
    for (const TraceRow& row : process.rows) {
      if (row.intervals.empty()) continue;
      RecordedWorker& worker = workers[row.worker];
      worker.name = std::to_string(row.worker);
      std::ranges::copy(complete_steps(row.intervals), std::back_inserter(worker.durations));
    }
  StepTrace steps;
  for (auto& [member, worker] : workers) steps.push_back(std::move(worker));
  return steps;
}

}  // namespace

std::vector<KeyDescription> recording_options(const char* group) {
  std::vector<KeyDescription> keys;
  for (KeyDescription key : connection_options(group)) {
    if (key.name == "to") {
      key.name = "from";
      key.help = "a node: records the steps of a job that runs there, instead of a FILE";
    }
    keys.push_back(std::move(key));
  }
  keys.push_back(job_key(group));
  keys.back().help = "the name or number of the job, or the beginning of either [the only job]";
  keys.push_back({"record", ValueType::text, "TIME", "how long to record the job [30s]", group});
  return keys;
}

Result<std::optional<RecordedSteps>> record_steps(const Settings& settings) {
  const auto time = recording_time(settings);
  if (!time) return time.error();
  auto chosen = choose_job(connection_of(settings));
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return std::optional<RecordedSteps>{};
  auto& [access, snapshot, id] = **chosen;
  const JobSnapshot& job = snapshot.jobs.at(id);
  const std::string name = "job " + job.name;
  if (job.is_flow())
    return Error{name + ": is a flow, which has no steps; valid: a job that trains a model"};
  if (auto valid = check_recorded_job(setting_of(job, "barrier"), setting_of(job, "batch")); !valid)
    return std::move(valid).error().within(name);
  auto trace = collect(access, id, *time, !location_of(settings, "quiet").empty());
  if (!trace) {
    print_error(name + ": " + trace.error().message);
    return std::optional<RecordedSteps>{};
  }
  RecordedSteps recorded{job.name, *std::move(trace)};
  if (auto valid = check_step_trace(recorded.trace); !valid)
    return std::move(valid).error().within(name);
  return std::optional{std::move(recorded)};
}

}  // namespace starling::program
