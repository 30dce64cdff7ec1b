#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/cluster_view.hpp"
#include "starling/app/cluster/copies.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_every = 1s;

std::string state_of(const core::MemberRecord& node) {
  constexpr std::array<const char*, 4> states{"alive", "suspect", "dead", "left"};
  return states.at(static_cast<std::size_t>(node.state));
}

std::string state_of(const wire::MemberStatus& member) {
  constexpr std::array<const char*, 5> states{"joining", "running", "done", "shut out", "failed"};
  return member.state < states.size() ? states.at(member.state) : "unknown";
}

/// A line for each name that more than one live node has.
std::vector<std::string> doubled_names(const ClusterView& view) {
  std::map<std::string, std::vector<std::string>> places;
  for (const core::MemberRecord& node : view.nodes)
    if (core::is_live(node.state)) places[node.name].push_back(wire::place_of(node.address));
  std::vector<std::string> lines;
  for (const auto& [name, at] : places)
    if (at.size() > 1)
      lines.push_back(
          fmt::format("{} nodes are called '{}': {}; each needs a name of its own, and "
                      "where there are keys a key",
                      at.size(), name, fmt::join(at, ", ")));
  return lines;
}

/// Of a job, since the look before; none at the first.
std::optional<double> rate_of(wire::JobId id, const ClusterView& now, const ClusterView* before) {
  if (before == nullptr || !before->jobs.contains(id)) return std::nullopt;
  const std::chrono::duration<double> time = now.when - before->when;
  const auto made = now.jobs.at(id).updates();
  const auto had = before->jobs.at(id).updates();
  return made > had ? static_cast<double>(made - had) / time.count() : 0.0;
}

/// "  copies 1 of 2 wanted, 3 on their way"; empty where nobody has told the configuration.
std::string copies_of(const JobView& job) {
  if (!job.configuration) return {};
  const std::size_t incomplete = copies_incomplete(job);
  return fmt::format("  copies {} of {} wanted{}\n", job.configuration->copies_min(),
                     copies_wanted(job.settings),
                     incomplete > 0 ? fmt::format(", {} on their way", incomplete) : "");
}

std::string text_of(const ClusterView& view, const ClusterView* before) {
  std::string text;
  for (const core::MemberRecord& node : view.nodes)
    text += fmt::format("{}  {}  {}\n", node.name, wire::place_of(node.address), state_of(node));
  for (const auto& [id, job] : view.jobs) {
    text += fmt::format("job {}: {}\n", id, summary_of(job.settings));
    if (job.configuration)
      text +=
          fmt::format("  epoch {}, {}, {}{}\n", job.configuration->epoch,
                      counted(job.configuration->ranges.size(), "range"),
                      counted(job.configuration->members.size(), "member"),
                      job.configuration->coordinator
                          ? fmt::format(", the coordinator is {}", *job.configuration->coordinator)
                          : "");
    text += copies_of(job);
    if (const auto steps = job.steps(); !steps.empty())
      text += fmt::format("  steps {}-{}-{}", steps.front(), steps[steps.size() / 2], steps.back());
    const auto rate = rate_of(id, view, before);
    text += rate ? fmt::format(", {:.0f} updates/s\n", *rate) : "\n";
    if (!job.hindrance.empty()) text += fmt::format("  waits: {}\n", job.hindrance);
    if (!job.failure.empty()) text += fmt::format("  failed: {}\n", job.failure);
    for (const auto& [member, seen] : job.members)
      text += fmt::format(
          "  member {}: step {}, {}, on {}{}{}\n", member, seen.status.step, state_of(seen.status),
          seen.node, seen.status.held > 0 ? ", holds " + counted(seen.status.held, "range") : "",
          seen.status.why.empty() ? "" : ": " + seen.status.why);
  }
  return text;
}

std::string json_of(const ClusterView& view, const ClusterView* before) {
  nlohmann::ordered_json json;
  json["nodes"] = nlohmann::ordered_json::array();
  for (const core::MemberRecord& node : view.nodes) {
    auto& all = json["nodes"].emplace_back(nlohmann::ordered_json{
        {"name", node.name}, {"address", wire::place_of(node.address)}, {"state", state_of(node)}});
    if (const auto counts = view.counts.find(node.id); counts != view.counts.end())
      all["membership"] = {{"probes", counts->second.probes},
                           {"probes_failed", counts->second.probes_failed},
                           {"suspicions", counts->second.suspicions},
                           {"deaths", counts->second.deaths},
                           {"refutations", counts->second.refutations}};
  }
  json["jobs"] = nlohmann::json::array();
  for (const auto& [id, job] : view.jobs) {
    nlohmann::ordered_json all;
    all["job"] = std::to_string(id);
    for (const auto& [key, text] : job.settings) all["settings"][key] = text;
    all["epoch"] = job.configuration ? job.configuration->epoch : 0;
    all["ranges"] = job.configuration ? job.configuration->ranges.size() : 0;
    if (job.configuration)
      all["copies"] = {{"wanted", copies_wanted(job.settings)},
                       {"least", job.configuration->copies_min()},
                       {"on_their_way", copies_incomplete(job)}};
    if (job.configuration && job.configuration->coordinator)
      all["coordinator"] = *job.configuration->coordinator;
    if (const auto steps = job.steps(); !steps.empty())
      all["steps"] = {
          {"min", steps.front()}, {"median", steps[steps.size() / 2]}, {"max", steps.back()}};
    all["updates"] = job.updates();
    if (const auto rate = rate_of(id, view, before)) all["updates_per_s"] = *rate;
    all["client"] = job.client;
    all["waits"] = job.hindrance;
    all["failure"] = job.failure;
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
    json["jobs"].push_back(std::move(all));
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool is_set(const Settings& settings, const std::string& key) {
  return !place_of(settings, key).empty();
}

}  // namespace

const std::vector<KeyForm>& status_keys() {
  static const std::vector<KeyForm> keys = [] {
    std::vector<KeyForm> all = access_keys("Options");
    all.push_back({"watch", KeyKind::flag, "", "again every second, until Ctrl-C", "Options"});
    all.push_back({"here", KeyKind::flag, "", "of jobs only what is on that node", "Options"});
    all.push_back({"json", KeyKind::flag, "", "one JSON object a look", "Options"});
    return all;
  }();
  return keys;
}

Result<int> status_command(const Settings& settings) {
  saves_nothing();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const bool watches = is_set(settings, "watch");
  std::optional<OrderlyStop> orderly;
  if (watches) orderly.emplace(nullptr);
  std::optional<ClusterView> before;
  while (true) {
    auto view = look_at(*access, is_set(settings, "here"));
    if (!view) {
      complain(view.error().message);
      return job_failed;
    }
    for (const std::string& line : doubled_names(*view)) complain(line);
    const auto* last = before ? &*before : nullptr;
    const std::string text = is_set(settings, "json") ? json_of(*view, last) : text_of(*view, last);
    auto put = put_out(last != nullptr && !is_set(settings, "json") ? "\n" + text : text, done);
    if (!put || *put != done || !watches) return put;
    before = *std::move(view);
    if (is_interrupted_before(before->when + watch_every)) return done;
  }
}

const std::vector<KeyForm>& stop_keys() {
  static const std::vector<KeyForm> keys = [] {
    std::vector<KeyForm> all = access_keys("Options");
    all.push_back(job_key("Options"));
    all.push_back({"drop", KeyKind::flag, "",
                   "drop its model too: for a job that nobody follows any more", "Options"});
    return all;
  }();
  return keys;
}

Result<int> stop_command(const Settings& settings) {
  saves_nothing();
  auto chosen = choose_job(settings);
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return job_failed;
  auto& [access, view, job] = **chosen;
  const bool drops = is_set(settings, "drop");
  std::string silent;
  for (const core::MemberRecord& node : view.nodes) {
    if (!core::is_live(node.state)) continue;
    const auto request =
        drops ? wire::RequestBody{wire::CloseJob{job}} : wire::RequestBody{wire::StopJob{job}};
    if (!access.client->ask(node.address, request, 5s))
      silent += (silent.empty() ? "" : ", ") + node.name;
  }
  if (!silent.empty()) {
    complain("no answer from " + silent + "; the same command tells them again");
    return job_failed;
  }
  return put_out("job " + std::to_string(job) +
                     (drops ? ": dropped\n"
                            : ": stops at the end of its steps; whoever follows it saves the "
                              "model, or, where nobody does, `attach --save FILE`\n"),
                 done);
}

}  // namespace starling::app
