#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto reply_timeout = 5s;
/// Longer than the 30 s for which a node hands over at most.
constexpr auto leave_timeout = 35s;
/// Longer than the time that a node takes to end once it has left.
constexpr auto end_timeout = 2s;

/// Returns the state of the node that was asked to leave, as the first other live node that answers
/// knows it. If no other node answers, the leaving node counts as left once it no longer answers.
core::NodeState state_of(Access& access, const wire::NodeStatus& leaving) {
  for (const core::NodeRecord& other : leaving.others) {
    if (!core::is_live(other.state)) continue;
    const auto status =
        access.client->ask_for<wire::NodeStatus>(other.address, wire::GetStatus{}, 2s);
    if (!status) continue;
    const auto known = std::ranges::find(status->others, leaving.self.id, &core::NodeRecord::id);
    return known == status->others.end() ? core::NodeState::left : known->state;
  }
  return access.client->ask(access.seed, wire::GetStatus{}, reply_timeout) ? core::NodeState::alive
                                                                           : core::NodeState::left;
}

}  // namespace

const std::vector<KeyDescription>& leave_options() {
  static const std::vector<KeyDescription> keys = [] {
    std::vector<KeyDescription> all = connection_options("Options");
    for (KeyDescription& key : all)
      if (key.name == "to") key.help = "the node that leaves";
    return all;
  }();
  return keys;
}

Result<int> leave_command(const Settings& settings) {
  omit_saving_from_signal_message();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto node = access->ask_status();
  const auto reply = node ? access->client->ask(access->seed, wire::LeaveCluster{}, reply_timeout)
                          : Result<wire::ReplyBody>{node.error()};
  if (!reply) {
    print_error(reply.error().message);
    return job_failed;
  }
  const std::string name = printable(node->self.name);  // another process chose it
  const auto deadline = std::chrono::steady_clock::now() + leave_timeout;
  core::NodeState state{};
  while (core::is_live(state = state_of(*access, *node))) {
    if (std::chrono::steady_clock::now() > deadline) {
      print_error(name + " has not left yet; it is still handing over to the other nodes");
      return job_failed;
    }
    std::this_thread::sleep_for(100ms);
  }
  if (state == core::NodeState::dead) {
    print_error(name +
                " did not leave in order: the other nodes declared it dead, and go on without it");
    return job_failed;
  }
  // The node's process listens until its jobs have ended. A node that is started there next needs
  // the port.
  const auto end_deadline = std::chrono::steady_clock::now() + end_timeout;
  while (accepts_connections(wire::without_key(node->self.address)) &&
         std::chrono::steady_clock::now() < end_deadline)
    std::this_thread::sleep_for(20ms);
  return write_stdout(name + " has left\n", done);
}

}  // namespace starling::program
