#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/flow_stages.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/cluster/follow/replicas.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_interval = 1s;

std::string state_of(const ClusterSnapshot& snapshot, const core::NodeRecord& node) {
  if (snapshot.revoked.contains(node.id)) return "revoked";
  constexpr std::array<const char*, 4> states{"alive", "suspect", "dead", "left"};
  return states.at(static_cast<std::size_t>(node.state));
}

std::string state_of(const wire::MemberStatus& member) {
  constexpr std::array<const char*, 5> states{"joining", "running", "done", "shut out", "failed"};
  return member.state < states.size() ? states.at(member.state) : "unknown";
}

/// Returns a node's HOST:PORT, with characters that cannot be printed replaced, because another
/// process wrote it.
std::string printable_address(const core::NodeRecord& node) {
  return printable(wire::without_key(node.address));
}

/// Returns a warning for each name that several live nodes have.
std::vector<std::string> duplicate_name_warnings(const ClusterSnapshot& snapshot) {
  std::map<std::string, std::vector<std::string>> addresses_by_name;
  for (const core::NodeRecord& node : snapshot.nodes)
    if (core::is_live(node.state) && !snapshot.revoked.contains(node.id))
      addresses_by_name[node.name].push_back(printable_address(node));
  std::vector<std::string> lines;
  for (const auto& [name, addresses] : addresses_by_name)
    if (addresses.size() > 1)
      lines.push_back(
          fmt::format("{} nodes are called '{}': {}; each needs a name of its own, and "
                      "in a cluster with keys a key file",
                      addresses.size(), name, fmt::join(addresses, ", ")));
  return lines;
}

/// Returns "  copies 1 of 2 wanted, 3 on their way" or, if the job's exchange has no owners of
/// ranges, "  2 of 3 workers hold the whole model"; empty if no node has sent the configuration, or
/// for a flow.
std::string copies_line(const ClusterSnapshot& snapshot, const JobSnapshot& job) {
  if (!job.configuration || job.is_flow()) return {};
  if (job.configuration->ranges.empty())
    return fmt::format("  {} of {} the whole model\n", whole_copies(job),
                       print_count(job.workers().size(), "worker") +
                           (job.workers().size() == 1 ? " holds" : " hold"));
  const std::size_t incomplete = replicas_in_transfer(job);
  return fmt::format("  copies {} of {} wanted{}\n", fewest_live_owners(job, snapshot.nodes),
                     replicas_wanted(job.settings),
                     incomplete > 0 ? fmt::format(", {} on their way", incomplete) : "");
}

/// Returns a line about the latest configuration; empty if no node has sent one.
std::string configuration_line(const JobSnapshot& job) {
  if (!job.configuration) return {};
  const core::Configuration& latest = *job.configuration;
  return fmt::format(
      "  configuration {}, {}{}{}\n", latest.epoch,
      job.is_flow() ? "" : print_count(range_count(job), "range") + ", ",
      print_count(latest.members.size(), "member"),
      latest.coordinator ? fmt::format(", the coordinator is {}", *latest.coordinator) : "");
}

/// Returns the stage that a flow computes now; nullopt if it does not run.
std::optional<RunningStage> running_stage(const JobSnapshot& job) {
  if (job.state() != wire::JobState::running) return std::nullopt;
  return job.stages.running(job.nodes());
}

/// Returns lines about the running stage of a flow and about recomputed parts; empty for other
/// jobs, and before the flow has begun.
std::string stage_lines(const JobSnapshot& job) {
  if (!job.is_flow() || !job.stages.has_begun()) return {};
  std::string text;
  if (const auto stage = running_stage(job)) text = "  " + print(*stage) + "\n";
  return text + "  " + print(job.stages.recomputed_parts()) + "\n";
}

std::string text_of(const ClusterSnapshot& snapshot, const JobSnapshot& job) {
  std::string text = fmt::format("job {}: {}\n  {}\n", job.name, actor::summary_of(job.settings),
                                 progress_text(job, utc_now_us() / 1000));
  text += configuration_line(job) + copies_line(snapshot, job) + stage_lines(job);
  if (const auto steps = job.steps(); !steps.empty() && !job.is_flow())
    text += fmt::format("  steps {}-{}-{}\n", steps.front(), steps[steps.size() / 2], steps.back());
  if (!job.blocked_reason.empty() && job.failure_reason().empty())
    text += fmt::format("  waits: {}\n", job.blocked_reason);
  for (const auto& [id, member] : job.members) {
    const wire::MemberStatus& status = member.status;
    const core::Member* known = job.configuration ? job.configuration->find(id) : nullptr;
    // A server or the coordinator makes no steps, and so counts as done from the beginning.
    const bool only_serves =
        !job.is_flow() && known != nullptr && !known->works && state_of(status) == "done";
    text += fmt::format(
        "  member {}: {}{}, on {}{}{}\n", id,
        job.is_flow() || only_serves ? "" : fmt::format("step {}, ", status.step),
        only_serves ? "has no worker" : state_of(status), member.node,
        status.ranges_held > 0 ? ", holds " + print_count(status.ranges_held, "range") : "",
        status.why.empty() ? "" : ": " + status.why);
  }
  return text;
}

std::string text_of(const ClusterSnapshot& snapshot, const std::vector<wire::JobId>& jobs) {
  std::string text;
  for (const core::NodeRecord& node : snapshot.nodes)
    text +=
        fmt::format("{}  {}  {}\n", node.name, printable_address(node), state_of(snapshot, node));
  for (const wire::JobId id : jobs) text += text_of(snapshot, snapshot.jobs.at(id));
  return text;
}

void add_progress(nlohmann::ordered_json& json, const JobSnapshot& job) {
  const JobProgress progress = progress_of(job, utc_now_us() / 1000);
  json["since"] = print_utc(job.started_ms * 1000);
  if (job.is_flow()) return;
  if (progress.data_epoch) json["epoch"] = *progress.data_epoch;
  if (const auto steps = job.steps(); !steps.empty())
    json["steps"] = {
        {"min", steps.front()}, {"median", steps[steps.size() / 2]}, {"max", steps.back()}};
  if (job.last_step() > 0) json["steps_total"] = job.last_step();
  if (progress.done_share) json["progress"] = *progress.done_share;
  if (const auto loss = job.loss()) json["loss"] = *loss;
  json["updates"] = job.updates();
  if (progress.updates_per_s) json["updates_per_s"] = *progress.updates_per_s;
  if (progress.remaining_s) json["left_s"] = *progress.remaining_s;
}

/// Adds what the nodes have computed of a flow.
void add_flow(nlohmann::ordered_json& json, const JobSnapshot& job) {
  nlohmann::ordered_json& flow = json["flow"];
  flow["name"] = actor::setting_of(job.settings, "flow");
  flow["workers"] = job.configuration
                        ? std::ranges::count_if(job.configuration->members, &core::Member::works)
                        : 0;
  if (const auto stage = running_stage(job))
    flow["stage"] = {{"action", stage->action},
                     {"number", stage->number},
                     {"stages", stage->stages},
                     {"operations", stage->description.operations},
                     {"parts_done", stage->parts_done},
                     {"parts", stage->description.parts},
                     {"records_read", stage->counts.records_read},
                     {"written_bytes", stage->counts.bytes_written},
                     {"spilled_bytes", stage->counts.bytes_spilled},
                     {"seconds", stage->seconds}};
  const RecomputedParts recomputed = job.stages.recomputed_parts();
  flow["parts_again"] = recomputed.parts;
  flow["parts_again_is_minimum"] = recomputed.is_minimum;
}

void add_configuration(nlohmann::ordered_json& json, const ClusterSnapshot& snapshot,
                       const JobSnapshot& job) {
  if (!job.configuration) return;
  json["configuration"] = job.configuration->epoch;
  if (!job.is_flow()) json["ranges"] = range_count(job);
  if (job.is_flow()) {
    // A flow has no model.
  } else if (job.configuration->ranges.empty()) {
    // No range has owners: each worker keeps the whole model.
    json["whole_copies"] = whole_copies(job);
  } else {
    json["copies"] = {{"wanted", replicas_wanted(job.settings)},
                      {"least", fewest_live_owners(job, snapshot.nodes)},
                      {"on_their_way", replicas_in_transfer(job)}};
  }
  if (job.configuration->coordinator) json["coordinator"] = *job.configuration->coordinator;
}

/// Returns the settings as an object; the texts of a key that occurs several times as a list.
nlohmann::ordered_json json_of(const wire::JobSettings& settings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, text] : settings) {
    if (!json.contains(key))
      json[key] = text;
    else if (json[key].is_array())
      json[key].push_back(text);
    else
      json[key] = nlohmann::ordered_json::array({json[key], text});
  }
  return json;
}

nlohmann::ordered_json json_of(wire::JobId id, const ClusterSnapshot& snapshot) {
  const JobSnapshot& job = snapshot.jobs.at(id);
  nlohmann::ordered_json json{{"job", std::to_string(id)},
                              {"name", job.name},
                              {"state", print(job.state())},
                              {"why", job.failure_reason()}};
  json["settings"] = json_of(job.settings);
  add_progress(json, job);
  if (job.is_flow()) add_flow(json, job);
  add_configuration(json, snapshot, job);
  json["client"] = job.client;
  json["waits"] = job.blocked_reason;
  json["failure"] = job.give_up_reason;
  json["members"] = nlohmann::json::array();
  for (const auto& [member_id, member] : job.members) {
    const wire::MemberStatus& status = member.status;
    nlohmann::ordered_json entry{{"member", member_id},
                                 {"node", member.node},
                                 {"state", state_of(status)},
                                 {"why", status.why}};
    const core::Member* known = job.configuration ? job.configuration->find(member_id) : nullptr;
    if (job.is_flow()) {
      entry["works"] = known != nullptr && known->works;
    } else {
      entry["step"] = status.step;
      entry["ranges_held"] = status.ranges_held;
      entry["samples"] = status.samples;
      entry["waited_s"] = static_cast<double>(status.waited_ns) / 1e9;
      entry["active_s"] = static_cast<double>(status.active_ns) / 1e9;
      entry["draws"] = status.draws.draws;
      entry["passes"] = status.draws.passes;
      entry["drawn"] = status.draws.times_drawn;
    }
    json["members"].push_back(std::move(entry));
  }
  return json;
}

std::string json_of(const ClusterSnapshot& snapshot, const std::vector<wire::JobId>& jobs) {
  nlohmann::ordered_json json;
  json["nodes"] = nlohmann::ordered_json::array();
  for (const core::NodeRecord& node : snapshot.nodes) {
    auto& entry =
        json["nodes"].emplace_back(nlohmann::ordered_json{{"name", node.name},
                                                          {"address", printable_address(node)},
                                                          {"state", state_of(snapshot, node)}});
    if (const auto counts = snapshot.counts.find(node.id); counts != snapshot.counts.end())
      entry["membership"] = {{"probes", counts->second.probes},
                             {"probes_failed", counts->second.probes_failed},
                             {"suspicions", counts->second.suspicions},
                             {"deaths", counts->second.deaths},
                             {"refutations", counts->second.refutations}};
  }
  json["jobs"] = nlohmann::json::array();
  for (const wire::JobId id : jobs) json["jobs"].push_back(json_of(id, snapshot));
  return json_text(json) + "\n";
}

/// Returns the job that the setting `job` names; all jobs if it is not set.
Result<std::vector<wire::JobId>> jobs_of(const Settings& settings,
                                         const ClusterSnapshot& snapshot) {
  if (!location_of(settings, "job").empty()) {
    const auto requested = find_requested_job(settings, snapshot);
    if (!requested) return requested.error();
    return std::vector{*requested};
  }
  std::vector<wire::JobId> ids;
  for (const auto& [id, job] : snapshot.jobs) ids.push_back(id);
  return ids;
}

bool is_set(const Settings& settings, const std::string& key) {
  return !location_of(settings, key).empty();
}

}  // namespace

const std::vector<KeyDescription>& status_options() {
  static const std::vector<KeyDescription> keys = [] {
    std::vector<KeyDescription> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back({"watch", ValueType::flag, "", "again every second, until Ctrl-C", "Options"});
    all.push_back(
        {"here", ValueType::flag, "", "of the jobs only what the node of --to has", "Options"});
    all.push_back({"json", ValueType::flag, "", "one JSON object each time", "Options"});
    return all;
  }();
  return keys;
}

Result<int> status_command(const Settings& settings) {
  omit_saving_from_signal_message();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const bool watches = is_set(settings, "watch");
  std::optional<GracefulStop> graceful_stop;
  if (watches) graceful_stop.emplace(nullptr);
  for (bool is_first = true;; is_first = false) {
    const auto scope =
        is_set(settings, "here") ? SnapshotScope::seed_node : SnapshotScope::all_nodes;
    auto snapshot = take_snapshot(*access, scope);
    if (!snapshot) {
      print_error(snapshot.error().message);
      return job_failed;
    }
    const auto jobs = jobs_of(settings, *snapshot);
    if (!jobs) return jobs.error();
    ask_for_stages(*access, *snapshot, scope);
    for (const std::string& line : duplicate_name_warnings(*snapshot)) print_error(line);
    const bool is_json = is_set(settings, "json");
    const std::string text = is_json ? json_of(*snapshot, *jobs) : text_of(*snapshot, *jobs);
    auto code = write_stdout(!is_first && !is_json ? "\n" + text : text, done);
    if (!code || *code != done || !watches) return code;
    if (wait_for_interrupt_until(snapshot->taken_at + watch_interval)) return done;
  }
}

}  // namespace starling::program
