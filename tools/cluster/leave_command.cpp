#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto reply_within = 5s;
/// Longer than a node takes to leave at most.
constexpr auto leave_within = 35s;

/// True if the node that was asked to leave has left: another node reports it, or, where it was the
/// last node, it no longer answers.
bool is_gone(Access& access, const wire::NodeStatus& leaving) {
  for (const core::NodeRecord& other : leaving.others) {
    if (!core::is_live(other.state)) continue;
    const auto seen =
        access.client->ask_for<wire::NodeStatus>(other.address, wire::GetStatus{}, 2s);
    if (!seen) continue;
    const auto known = std::ranges::find(seen->others, leaving.self.id, &core::NodeRecord::id);
    return known == seen->others.end() || !core::is_live(known->state);
  }
  return !access.client->ask(access.seed, wire::GetStatus{}, reply_within);
}

}  // namespace

const std::vector<KeyForm>& leave_options() {
  static const std::vector<KeyForm> keys = connection_options("Options");
  return keys;
}

Result<int> leave_command(const Settings& settings) {
  say_nothing_of_saving();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto node = access->ask_status();
  const auto asked = node ? access->client->ask(access->seed, wire::LeaveCluster{}, reply_within)
                          : Result<wire::ReplyBody>{node.error()};
  if (!asked) {
    print_error(asked.error().message);
    return job_failed;
  }
  const auto deadline = std::chrono::steady_clock::now() + leave_within;
  while (!is_gone(*access, *node)) {
    if (std::chrono::steady_clock::now() > deadline) {
      print_error(node->self.name + " is still there; it goes on handing over");
      return job_failed;
    }
    std::this_thread::sleep_for(100ms);
  }
  return write_stdout(node->self.name + " has left\n", done);
}

}  // namespace starling::program
