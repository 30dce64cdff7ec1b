#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/job_choice.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto follow_interval = 500ms;
constexpr auto log_timeout = 5s;
/// The most lines that are read from a node at a time: as many as a node keeps.
constexpr std::size_t lines_max = 1000;

/// A log line, and the node that wrote it.
struct NodeLine {
  wire::LogLine line;
  std::string node;
};

/// Reads the log lines of all nodes, or of one, and remembers how far it has read.
class LogReader {
 public:
  /// An empty `node_name` means all nodes.
  LogReader(Access& access, std::string node_name)
      : access_(access), node_name_(std::move(node_name)) {}

  /// Returns the lines since the last call, in the order of the nodes' clocks. Returns an Error if
  /// the seed node does not answer, or no live node has the wanted name.
  [[nodiscard]] Result<std::vector<NodeLine>> read() {
    auto snapshot = take_snapshot(access_, SnapshotScope::seed_node);
    if (!snapshot) return std::move(snapshot).error();
    std::vector<NodeLine> lines;
    bool is_any_live = false;
    for (const core::NodeRecord& node : snapshot->nodes) {
      if (!core::is_live(node.state) || (!node_name_.empty() && node.name != node_name_)) continue;
      is_any_live = true;
      read(node, lines);
    }
    if (!is_any_live)
      return Error{"'" + node_name_ + "' is no node that runs; valid: " + live_names(*snapshot)};
    std::ranges::stable_sort(lines, {}, [](const NodeLine& line) { return line.line.time_us; });
    return lines;
  }

 private:
  void read(const core::NodeRecord& node, std::vector<NodeLine>& lines) {
    std::uint64_t& next = next_lines_[node.id];
    const std::size_t lines_before = lines.size();
    while (lines.size() < lines_before + lines_max) {
      const auto reply =
          access_.client->ask_for<wire::LogLines>(node.address, wire::GetLog{next}, log_timeout);
      if (!reply || reply->lines.empty() || reply->next <= next) return;
      next = reply->next;
      for (const wire::LogLine& line : reply->lines) lines.push_back({line, node.name});
    }
  }

  static std::string live_names(const ClusterSnapshot& snapshot) {
    std::string all;
    for (const core::NodeRecord& node : snapshot.nodes)
      if (core::is_live(node.state)) all += (all.empty() ? "" : ", ") + node.name;
    return all;
  }

  Access& access_;
  const std::string node_name_;
  /// The number of the first line of each node that was not read yet.
  std::map<wire::NodeId, std::uint64_t> next_lines_;
};

/// Returns the name of the job that the settings name: one that runs, one that has ended, or one
/// that only log lines mention.
Result<std::string> find_job_name(Access& access, const Settings& settings,
                                  const std::vector<NodeLine>& lines) {
  const auto snapshot = take_snapshot(access, SnapshotScope::all_nodes);
  if (!snapshot) return snapshot.error();
  std::vector<JobCandidate> all;
  const auto add = [&](wire::JobId id, const std::string& name, const std::string& description) {
    if (!name.empty() && std::ranges::count(all, name, &JobCandidate::name) == 0)
      all.push_back({id, name, description});
  };
  for (const auto& [id, job] : snapshot->jobs) add(id, job.name, actor::summary_of(job.settings));
  for (const auto& [id, job] : ended_jobs(access, *snapshot)) add(id, job.name, job.description);
  for (const NodeLine& one : lines) add(0, printable(one.line.job), {});
  const auto chosen =
      choose(text_of(settings, "job"), all, "the nodes have logged nothing about any job");
  if (!chosen) return Error{chosen.error()}.within(location_of(settings, "job"));
  return all[*chosen].name;
}

std::string text_of(const std::vector<NodeLine>& lines, const std::string& job) {
  std::string text;
  for (const auto& [line, node] : lines)
    if (job.empty() || printable(line.job) == job)
      text += print_utc(line.time_us) + " " + node + " " + printable(line.text) + "\n";
  return text;
}

}  // namespace

const std::vector<KeyDescription>& logs_options() {
  static const std::vector<KeyDescription> keys = [] {
    std::vector<KeyDescription> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back(
        {"node", ValueType::text, "NAME", "only the lines of this node [all]", "Options"});
    all.push_back({"follow", ValueType::flag, "", "print new lines too, until Ctrl-C", "Options"});
    return all;
  }();
  return keys;
}

Result<int> logs_command(const Settings& settings) {
  omit_saving_from_signal_message();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  LogReader reader{*access, text_of(settings, "node")};
  const bool follows = !text_of(settings, "follow").empty();
  std::optional<GracefulStop> orderly;
  if (follows) orderly.emplace(nullptr);
  std::optional<std::string> job;
  while (true) {
    const auto lines = reader.read();
    if (!lines) {
      print_error(lines.error().message);
      return job_failed;
    }
    if (!job) {
      auto name = location_of(settings, "job").empty() ? Result<std::string>{std::string{}}
                                                       : find_job_name(*access, settings, *lines);
      if (!name) return std::move(name).error();
      job = *std::move(name);
    }
    auto put = write_stdout(text_of(*lines, *job), done);
    if (!put || *put != done || !follows) return put;
    if (wait_for_interrupt_until(std::chrono::steady_clock::now() + follow_interval)) return done;
  }
}

}  // namespace starling::program
