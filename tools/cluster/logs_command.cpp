#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
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
/// The most lines that one call of LogReader::read() reads from a node: as many as a node keeps.
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

  /// Returns the lines since the call before, sorted by the times that the nodes gave them. If a
  /// node does not answer several calls in a row, prints its name at the first of them only.
  /// Returns an Error if the node of `--to` does not answer, or if no live node is called
  /// `node_name`.
  [[nodiscard]] Result<std::vector<NodeLine>> read() {
    auto snapshot = take_snapshot(access_, SnapshotScope::seed_node);
    if (!snapshot) return std::move(snapshot).error();
    std::vector<core::NodeRecord> nodes;
    for (const core::NodeRecord& node : snapshot->nodes)
      if (core::is_live(node.state) && !snapshot->revoked.contains(node.id) &&
          (node_name_.empty() || node.name == node_name_))
        nodes.push_back(node);
    if (nodes.empty())
      return Error{"'" + node_name_ +
                   "' is not a running node; valid: " + snapshot->live_names_except({})};
    std::vector<NodeLine> lines = read(std::move(nodes));
    std::ranges::stable_sort(lines, {}, [](const NodeLine& line) { return line.line.time_us; });
    return lines;
  }
  /// True if a node has not answered the last call of read().
  [[nodiscard]] bool has_silent_nodes() const { return !silent_.empty(); }

 private:
  /// Asks all `nodes` at once for their lines since the last call, and asks again the nodes that
  /// have more.
  std::vector<NodeLine> read(std::vector<core::NodeRecord> nodes) {
    std::vector<NodeLine> lines;
    std::map<wire::NodeId, std::size_t> counts;
    std::set<std::string> silent;
    while (!nodes.empty()) {
      std::vector<std::pair<std::string, wire::RequestBody>> requests;
      for (const core::NodeRecord& node : nodes)
        requests.emplace_back(node.address, wire::GetLog{next_lines_[node.id]});
      // A grace as long as the timeout: the first reply shortens the wait for no other node.
      const auto replies = access_.client->ask_each(requests, log_timeout, log_timeout);
      std::vector<core::NodeRecord> unread;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const core::NodeRecord& node = nodes[i];
        if (!replies[i]) silent.insert(node.name);
        const auto* reply = replies[i] ? std::get_if<wire::LogLines>(&replies[i]->body) : nullptr;
        std::uint64_t& next = next_lines_[node.id];
        if (reply == nullptr || reply->lines.empty() || reply->next <= next) continue;
        next = reply->next;
        for (const wire::LogLine& line : reply->lines) lines.push_back({line, node.name});
        if ((counts[node.id] += reply->lines.size()) < lines_max) unread.push_back(node);
      }
      nodes = std::move(unread);
    }
    report_silence(std::move(silent));
    return lines;
  }

  /// Prints the names in `silent` that were not in it at the last call.
  void report_silence(std::set<std::string> silent) {
    std::string names;
    for (const std::string& name : silent)
      if (!silent_.contains(name)) names += (names.empty() ? "" : ", ") + name;
    if (!names.empty()) print_error("no answer from " + names + ": their lines are missing");
    silent_ = std::move(silent);
  }

  Access& access_;
  const std::string node_name_;
  /// For each node, the number of its first line that was not read yet.
  std::map<wire::NodeId, std::uint64_t> next_lines_;
  /// The names of the nodes that have not answered the last call of read().
  std::set<std::string> silent_;
};

/// Returns the full name of the job that the setting `job` names: a running one, an ended one, or
/// one that only log lines mention.
Result<std::string> find_job_name(Access& access, const Settings& settings,
                                  const std::vector<NodeLine>& lines) {
  const auto snapshot = take_snapshot(access, SnapshotScope::all_nodes);
  if (!snapshot) return snapshot.error();
  std::vector<JobCandidate> candidates;
  const auto add = [&](wire::JobId id, const std::string& name, const std::string& description) {
    if (!name.empty() && std::ranges::count(candidates, name, &JobCandidate::name) == 0)
      candidates.push_back({id, name, description});
  };
  for (const auto& [id, job] : snapshot->jobs) add(id, job.name, actor::summary_of(job.settings));
  const EndedJobs ended = ended_jobs(access, *snapshot);
  for (const auto& [id, job] : ended.records) add(id, job.name, job.description);
  for (const NodeLine& line : lines) add(0, printable(line.line.job), {});
  const auto chosen =
      choose(text_of(settings, "job"), candidates, "the nodes have logged nothing about any job");
  if (!chosen) return Error{chosen.error()}.within(location_of(settings, "job"));
  return candidates[*chosen].name;
}

/// Returns as text the lines about the job whose name is `job`; all lines if `job` is empty.
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
  std::optional<GracefulStop> graceful_stop;
  if (follows) graceful_stop.emplace(nullptr);  // prints no message at Ctrl-C
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
    auto code = write_stdout(text_of(*lines, *job), done);
    if (!code || *code != done) return code;
    // True if the user asked for the lines of one node, and this node has not answered.
    const bool is_failed = reader.has_silent_nodes() && !text_of(settings, "node").empty();
    if (!follows) return is_failed ? job_failed : done;
    if (wait_for_interrupt_until(std::chrono::steady_clock::now() + follow_interval)) return done;
  }
}

}  // namespace starling::program
