#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/cluster_view.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto follow_every = 500ms;
constexpr auto ask_within = 5s;
/// As long as a node takes for it at most.
constexpr auto leave_within = 35s;

/// What nodes say, and how far it was read.
class LogReader {
 public:
  LogReader(Access& access, std::string only) : access_(access), only_(std::move(only)) {}

  /// What was said since the last time, in the order of the clocks of the nodes. An Error where
  /// nobody answers, or there is no such node.
  [[nodiscard]] Result<std::string> read() {
    auto view = look_at(access_, true);
    if (!view) return std::move(view).error();
    std::vector<std::pair<std::string, std::string>> lines;
    bool is_there = false;
    for (const core::MemberRecord& node : view->nodes) {
      if (!core::is_live(node.state) || (!only_.empty() && node.name != only_)) continue;
      is_there = true;
      read(node, lines);
    }
    if (!is_there) return Error{"'" + only_ + "' is no node that runs; valid: " + names(*view)};
    std::ranges::stable_sort(
        lines, {}, [](const auto& line) { return line.first.substr(0, line.first.find(' ')); });
    std::string text;
    for (const auto& [line, node] : lines) {
      const auto space = std::min(line.find(' '), line.size());
      text += printable(line.substr(0, space) + " " + node + line.substr(space)) + "\n";
    }
    return text;
  }

 private:
  void read(const core::MemberRecord& node,
            std::vector<std::pair<std::string, std::string>>& lines) {
    std::uint64_t& next = next_[node.id];
    while (true) {
      const auto said =
          access_.client->ask_for<wire::LogLines>(node.address, wire::AskLog{next}, ask_within);
      if (!said || said->lines.empty() || said->next <= next) return;
      next = said->next;
      for (const std::string& line : said->lines) lines.emplace_back(line, node.name);
    }
  }

  static std::string names(const ClusterView& view) {
    std::string all;
    for (const core::MemberRecord& node : view.nodes)
      if (core::is_live(node.state)) all += (all.empty() ? "" : ", ") + node.name;
    return all;
  }

  Access& access_;
  const std::string only_;
  std::map<wire::NodeId, std::uint64_t> next_;
};

/// Whether a node that was asked to leave has: another one says so, or, where it was the last, it
/// answers no more.
bool is_gone(Access& access, const wire::NodeStatus& leaving) {
  for (const core::MemberRecord& other : leaving.others) {
    if (!core::is_live(other.state)) continue;
    const auto seen =
        access.client->ask_for<wire::NodeStatus>(other.address, wire::AskStatus{}, 2s);
    if (!seen) continue;
    const auto known = std::ranges::find(seen->others, leaving.self.id, &core::MemberRecord::id);
    return known == seen->others.end() || !core::is_live(known->state);
  }
  return !access.client->ask(access.door, wire::AskStatus{}, ask_within);
}

}  // namespace

const std::vector<KeyForm>& logs_keys() {
  static const std::vector<KeyForm> keys = [] {
    std::vector<KeyForm> all = access_keys("Options");
    all.push_back({"node", KeyKind::text, "NAME", "of this node alone [all]", "Options"});
    all.push_back(
        {"follow", KeyKind::flag, "", "and what they say from now on, until Ctrl-C", "Options"});
    return all;
  }();
  return keys;
}

Result<int> logs_command(const Settings& settings) {
  saves_nothing();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  LogReader reader{*access, text_of(settings, "node")};
  const bool follows = !text_of(settings, "follow").empty();
  std::optional<OrderlyStop> orderly;
  if (follows) orderly.emplace(nullptr);
  while (true) {
    const auto text = reader.read();
    if (!text) {
      complain(text.error().message);
      return job_failed;
    }
    auto put = put_out(*text, done);
    if (!put || *put != done || !follows) return put;
    if (is_interrupted_before(std::chrono::steady_clock::now() + follow_every)) return done;
  }
}

const std::vector<KeyForm>& leave_keys() {
  static const std::vector<KeyForm> keys = access_keys("Options");
  return keys;
}

Result<int> leave_command(const Settings& settings) {
  saves_nothing();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto node = access->greet();
  const auto asked = node ? access->client->ask(access->door, wire::LeaveCluster{}, ask_within)
                          : Result<wire::ReplyBody>{node.error()};
  if (!asked) {
    complain(asked.error().message);
    return job_failed;
  }
  const auto give_up = std::chrono::steady_clock::now() + leave_within;
  while (!is_gone(*access, *node)) {
    if (std::chrono::steady_clock::now() > give_up) {
      complain(node->self.name + " is still there; it goes on handing over");
      return job_failed;
    }
    std::this_thread::sleep_for(100ms);
  }
  return put_out(node->self.name + " has left\n", done);
}

}  // namespace starling::app
