#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/copies.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_every = 1s;

std::string state_of(const ClusterSnapshot& snapshot, const core::NodeRecord& node) {
  if (snapshot.revoked.contains(node.id)) return "revoked";
  constexpr std::array<const char*, 4> states{"alive", "suspect", "dead", "left"};
  return states.at(static_cast<std::size_t>(node.state));
}

std::string state_of(const wire::MemberStatus& member) {
  constexpr std::array<const char*, 5> states{"joining", "running", "done", "shut out", "failed"};
  return member.state < states.size() ? states.at(member.state) : "unknown";
}

/// Returns a node's HOST:PORT made printable, for another process wrote it.
std::string shown_place(const core::NodeRecord& node) {
  return printable(wire::place_of(node.address));
}

/// A line for each name that more than one live node has.
std::vector<std::string> doubled_names(const ClusterSnapshot& snapshot) {
  std::map<std::string, std::vector<std::string>> places;
  for (const core::NodeRecord& node : snapshot.nodes)
    if (core::is_live(node.state) && !snapshot.revoked.contains(node.id))
      places[node.name].push_back(shown_place(node));
  std::vector<std::string> lines;
  for (const auto& [name, at] : places)
    if (at.size() > 1)
      lines.push_back(
          fmt::format("{} nodes are called '{}': {}; each needs a name of its own, and "
                      "where there are keys a key",
                      at.size(), name, fmt::join(at, ", ")));
  return lines;
}

/// "  copies 1 of 2 wanted, 3 on their way"; empty where no node has sent the configuration.
std::string copies_of(const ClusterSnapshot& snapshot, const JobSnapshot& job) {
  if (!job.configuration) return {};
  const std::size_t incomplete = copies_incomplete(job);
  return fmt::format("  copies {} of {} wanted{}\n", copies_held(job, snapshot.nodes),
                     copies_wanted(job.settings),
                     incomplete > 0 ? fmt::format(", {} on their way", incomplete) : "");
}

std::string configuration_of(const JobSnapshot& job) {
  if (!job.configuration) return {};
  const core::Configuration& now = *job.configuration;
  return fmt::format(
      "  configuration {}, {}, {}{}\n", now.epoch, counted(now.ranges.size(), "range"),
      counted(now.members.size(), "member"),
      now.coordinator ? fmt::format(", the coordinator is {}", *now.coordinator) : "");
}

std::string text_of(const ClusterSnapshot& snapshot, const JobSnapshot& job) {
  std::string text = fmt::format("job {}: {}\n  {}\n", job.name, actor::summary_of(job.settings),
                                 progress_text(job, utc_now_us() / 1000));
  text += configuration_of(job) + copies_of(snapshot, job);
  if (const auto steps = job.steps(); !steps.empty())
    text += fmt::format("  steps {}-{}-{}\n", steps.front(), steps[steps.size() / 2], steps.back());
  if (!job.blocked_reason.empty() && job.why().empty())
    text += fmt::format("  waits: {}\n", job.blocked_reason);
  for (const auto& [member, seen] : job.members)
    text += fmt::format("  member {}: step {}, {}, on {}{}{}\n", member, seen.status.step,
                        state_of(seen.status), seen.node,
                        seen.status.held > 0 ? ", holds " + counted(seen.status.held, "range") : "",
                        seen.status.why.empty() ? "" : ": " + seen.status.why);
  return text;
}

std::string text_of(const ClusterSnapshot& snapshot, const std::vector<wire::JobId>& jobs) {
  std::string text;
  for (const core::NodeRecord& node : snapshot.nodes)
    text += fmt::format("{}  {}  {}\n", node.name, shown_place(node), state_of(snapshot, node));
  for (const wire::JobId id : jobs) text += text_of(snapshot, snapshot.jobs.at(id));
  return text;
}

void add_progress(nlohmann::ordered_json& all, const JobSnapshot& job) {
  const JobProgress progress = progress_of(job, utc_now_us() / 1000);
  all["since"] = print_utc(job.since_ms * 1000);
  if (progress.epoch) all["epoch"] = *progress.epoch;
  if (const auto steps = job.steps(); !steps.empty())
    all["steps"] = {
        {"min", steps.front()}, {"median", steps[steps.size() / 2]}, {"max", steps.back()}};
  if (job.steps_total > 0) all["steps_total"] = job.steps_total;
  if (progress.share) all["progress"] = *progress.share;
  if (const auto loss = job.loss()) all["loss"] = *loss;
  all["updates"] = job.updates();
  if (progress.updates_per_s) all["updates_per_s"] = *progress.updates_per_s;
  if (progress.left_s) all["left_s"] = *progress.left_s;
}

void add_configuration(nlohmann::ordered_json& all, const ClusterSnapshot& snapshot,
                       const JobSnapshot& job) {
  if (!job.configuration) return;
  all["configuration"] = job.configuration->epoch;
  all["ranges"] = job.configuration->ranges.size();
  all["copies"] = {{"wanted", copies_wanted(job.settings)},
                   {"least", copies_held(job, snapshot.nodes)},
                   {"on_their_way", copies_incomplete(job)}};
  if (job.configuration->coordinator) all["coordinator"] = *job.configuration->coordinator;
}

nlohmann::ordered_json json_of(wire::JobId id, const ClusterSnapshot& snapshot) {
  const JobSnapshot& job = snapshot.jobs.at(id);
  nlohmann::ordered_json all{{"job", std::to_string(id)},
                             {"name", job.name},
                             {"state", print(job.state())},
                             {"why", job.why()}};
  for (const auto& [key, text] : job.settings) all["settings"][key] = text;
  add_progress(all, job);
  add_configuration(all, snapshot, job);
  all["client"] = job.client;
  all["waits"] = job.blocked_reason;
  all["failure"] = job.give_up_reason;
  all["members"] = nlohmann::json::array();
  for (const auto& [member, seen] : job.members)
    all["members"].push_back({{"member", member},
                              {"node", seen.node},
                              {"state", state_of(seen.status)},
                              {"why", seen.status.why},
                              {"step", seen.status.step},
                              {"ranges_held", seen.status.held},
                              {"samples", seen.status.samples},
                              {"waited_s", static_cast<double>(seen.status.waited_ns) / 1e9},
                              {"draws", seen.status.draws},
                              {"passes", seen.status.passes},
                              {"drawn", seen.status.drawn}});
  return all;
}

std::string json_of(const ClusterSnapshot& snapshot, const std::vector<wire::JobId>& jobs) {
  nlohmann::ordered_json json;
  json["nodes"] = nlohmann::ordered_json::array();
  for (const core::NodeRecord& node : snapshot.nodes) {
    auto& all = json["nodes"].emplace_back(nlohmann::ordered_json{
        {"name", node.name}, {"address", shown_place(node)}, {"state", state_of(snapshot, node)}});
    if (const auto counts = snapshot.counts.find(node.id); counts != snapshot.counts.end())
      all["membership"] = {{"probes", counts->second.probes},
                           {"probes_failed", counts->second.probes_failed},
                           {"suspicions", counts->second.suspicions},
                           {"deaths", counts->second.deaths},
                           {"refutations", counts->second.refutations}};
  }
  json["jobs"] = nlohmann::json::array();
  for (const wire::JobId id : jobs) json["jobs"].push_back(json_of(id, snapshot));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Returns the job that is asked for, or all.
Result<std::vector<wire::JobId>> jobs_of(const Settings& settings,
                                         const ClusterSnapshot& snapshot) {
  if (!place_of(settings, "job").empty()) {
    const auto one = which_job(settings, snapshot);
    if (!one) return one.error();
    return std::vector{*one};
  }
  std::vector<wire::JobId> all;
  for (const auto& [id, job] : snapshot.jobs) all.push_back(id);
  return all;
}

bool is_set(const Settings& settings, const std::string& key) {
  return !place_of(settings, key).empty();
}

}  // namespace

const std::vector<KeyForm>& status_options() {
  static const std::vector<KeyForm> keys = [] {
    std::vector<KeyForm> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back({"watch", KeyKind::flag, "", "again every second, until Ctrl-C", "Options"});
    all.push_back({"here", KeyKind::flag, "", "of jobs only what is on that node", "Options"});
    all.push_back({"json", KeyKind::flag, "", "one JSON object a look", "Options"});
    return all;
  }();
  return keys;
}

Result<int> status_command(const Settings& settings) {
  say_nothing_of_saving();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const bool watches = is_set(settings, "watch");
  std::optional<OrderlyStop> orderly;
  if (watches) orderly.emplace(nullptr);
  for (bool is_first = true;; is_first = false) {
    auto snapshot = take_snapshot(
        *access, is_set(settings, "here") ? SnapshotScope::seed_node : SnapshotScope::all_nodes);
    if (!snapshot) {
      print_error(snapshot.error().message);
      return job_failed;
    }
    const auto jobs = jobs_of(settings, *snapshot);
    if (!jobs) return jobs.error();
    for (const std::string& line : doubled_names(*snapshot)) print_error(line);
    const bool is_json = is_set(settings, "json");
    const std::string text = is_json ? json_of(*snapshot, *jobs) : text_of(*snapshot, *jobs);
    auto put = write_stdout(!is_first && !is_json ? "\n" + text : text, done);
    if (!put || *put != done || !watches) return put;
    if (is_interrupted_before(snapshot->taken_at + watch_every)) return done;
  }
}

}  // namespace starling::program
