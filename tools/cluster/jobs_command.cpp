#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/json_text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/job_choice.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/time_text.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// Returns a record of a running job, like those that nodes keep of ended jobs.
wire::JobRecord record_of(wire::JobId id, const JobSnapshot& job) {
  wire::JobRecord record{id, job.name, actor::summary_of(job.settings), job.client};
  record.summary = {job.state(), job.failure_reason()};
  record.began_at_ms = job.started_ms;
  record.updates_before = job.updates_before;
  for (const auto& [worker, updates] : job.worker_updates)
    record.workers.push_back({worker, updates});
  if (const auto steps = job.steps(); !steps.empty()) record.step_max = steps.back();
  record.steps_total = job.last_step();
  return record;
}

/// Returns the running and the ended jobs, in the order in which they began. Prints the names of
/// the nodes whose records are missing.
std::vector<wire::JobRecord> all_jobs(Access& access, const ClusterSnapshot& snapshot) {
  auto ended = ended_jobs(access, snapshot);
  if (!ended.silent_nodes.empty())
    print_error("no answer from " + ended.silent_nodes +
                ": jobs that no other node knows are missing");
  for (const auto& [id, job] : snapshot.jobs) ended.records.try_emplace(id, record_of(id, job));
  std::vector<wire::JobRecord> all;
  for (auto& [id, record] : ended.records) all.push_back(std::move(record));
  std::ranges::stable_sort(all, {}, &wire::JobRecord::began_at_ms);
  return all;
}

/// Returns a figure of the job's summary, which the program that followed the job has sent to the
/// nodes; nothing if the summary lacks it.
std::optional<double> summary_figure(const wire::JobRecord& job, std::string_view name) {
  const auto found =
      std::ranges::find(job.summary.figures, name, &std::pair<std::string, double>::first);
  return found == job.summary.figures.end() ? std::nullopt : std::optional{found->second};
}

/// Returns the number of updates in the summary. If the summary lacks it, returns the sum of the
/// updates before the job resumed and those of its workers.
double updates_of(const wire::JobRecord& job) {
  std::uint64_t updates = job.updates_before;
  for (const auto& worker : job.workers) updates += worker.updates;
  return summary_figure(job, "updates").value_or(static_cast<double>(updates));
}

/// Returns true if the job has run a flow: its description by actor::summary_of() begins with
/// `flow`. A model could have this name, but then the job has made updates.
bool is_flow(const wire::JobRecord& job) {
  return job.description.starts_with("flow ") && updates_of(job) == 0;
}

std::string text_of(const wire::JobRecord& job) {
  std::string text =
      fmt::format("{}  {}  {}\n", job.name, print(job.summary.state), job.description);
  text += fmt::format("  by {}, began {}", job.client, print_utc(job.began_at_ms * 1000));
  if (job.ended_at_ms > 0)
    text += fmt::format(", closed after {}",
                        time_text(static_cast<double>(job.ended_at_ms - job.began_at_ms) / 1000));
  if (!is_flow(job)) text += fmt::format(", {:.0f} updates", updates_of(job));
  if (job.steps_total > 0) text += fmt::format(", step {} of {}", job.step_max, job.steps_total);
  for (const auto& [name, value] : job.summary.figures) {
    if (is_flow(job) && std::trunc(value) == value)
      text += fmt::format(", {} {:.0f}", name, value);
    else if (is_flow(job) || name.starts_with("test_") || name.starts_with("train_"))
      text += fmt::format(", {} {:.4g}", name, value);
  }
  text += "\n";
  if (!job.summary.why.empty()) text += "  " + job.summary.why + "\n";
  return text;
}

nlohmann::ordered_json json_of(const wire::JobRecord& job) {
  nlohmann::ordered_json json{{"job", std::to_string(job.job)},
                              {"name", job.name},
                              {"state", print(job.summary.state)},
                              {"why", job.summary.why},
                              {"what", job.description},
                              {"client", job.client},
                              {"began", print_utc(job.began_at_ms * 1000)}};
  if (job.ended_at_ms > 0) {
    json["closed"] = print_utc(job.ended_at_ms * 1000);
    json["took_s"] = static_cast<double>(job.ended_at_ms - job.began_at_ms) / 1000;
  }
  if (!is_flow(job)) {
    json["updates"] = updates_of(job);
    json["step"] = job.step_max;
  }
  if (job.steps_total > 0) json["steps_total"] = job.steps_total;
  for (const auto& [name, value] : job.summary.figures) json["figures"][name] = value;
  return json;
}

/// If the setting `job` is set, erases all jobs that it does not name.
Result<void> keep_requested(std::vector<wire::JobRecord>& jobs, const Settings& settings) {
  const std::string location = location_of(settings, "job");
  if (location.empty()) return {};
  std::vector<JobCandidate> candidates;
  for (const wire::JobRecord& job : jobs) {
    // Several jobs may have had the same name, one after the other. The first stands for all of
    // them, and the others are named by their numbers, so that the name is not ambiguous.
    const bool is_taken = std::ranges::count(candidates, job.name, &JobCandidate::name) > 0;
    candidates.push_back({job.job, is_taken ? std::to_string(job.job) : job.name, job.description});
  }
  const std::string text = text_of(settings, "job");
  const auto chosen = choose(text, candidates, "no job has run on these nodes within a day");
  if (!chosen) return Error{chosen.error()}.within(location);
  const std::string wanted = candidates[*chosen].name;
  const wire::JobId id = candidates[*chosen].job;
  // The user may have given a job's number, or the beginning of it. A name stands for all jobs that
  // had it.
  const bool is_by_number = !wanted.starts_with(text);
  std::erase_if(
      jobs, [&](const auto& job) { return job.job != id && (is_by_number || job.name != wanted); });
  return {};
}

}  // namespace

const std::vector<KeyDescription>& jobs_options() {
  static const std::vector<KeyDescription> keys = [] {
    std::vector<KeyDescription> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back({"json", ValueType::flag, "", "one JSON object", "Options"});
    return all;
  }();
  return keys;
}

Result<int> jobs_command(const Settings& settings) {
  omit_saving_from_signal_message();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto snapshot = take_snapshot(*access, SnapshotScope::all_nodes);
  if (!snapshot) {
    print_error(snapshot.error().message);
    return job_failed;
  }
  auto jobs = all_jobs(*access, *snapshot);
  if (auto kept = keep_requested(jobs, settings); !kept) return std::move(kept).error();
  if (location_of(settings, "json").empty()) {
    std::string text;
    for (const wire::JobRecord& job : jobs) text += text_of(job);
    return write_stdout(text, done);
  }
  nlohmann::ordered_json json;
  json["jobs"] = nlohmann::json::array();
  for (const wire::JobRecord& job : jobs) json["jobs"].push_back(json_of(job));
  return write_stdout(json_text(json) + "\n", done);
}

}  // namespace starling::program
