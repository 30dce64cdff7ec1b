#include <string>
#include <vector>

#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Returns the request that ends a job: a job that has not begun, or is not to be kept, is closed.
/// A job that has ended before stays listed as it ended.
wire::RequestBody request_for(wire::JobId id, const JobSnapshot& job, bool drops) {
  const wire::JobState state = job.state();
  const bool begins = state == wire::JobState::preparing;
  if (!begins && !drops) return wire::StopJob{id};
  if (!begins && state != wire::JobState::running)
    return wire::CloseJob{id, wire::JobSummary{state, job.why()}};
  return wire::CloseJob{id, wire::JobSummary{wire::JobState::stopped,
                                             drops ? "dropped by `stop --drop`" : "stopped"}};
}

/// Names the live nodes that have not reported their status.
std::string unheard(const ClusterSnapshot& snapshot) {
  std::string names;
  for (const core::NodeRecord& node : snapshot.nodes)
    if (core::is_live(node.state) && !snapshot.revoked.contains(node.id) &&
        !snapshot.counts.contains(node.id))
      names += (names.empty() ? "" : ", ") + node.name;
  return names;
}

}  // namespace

const std::vector<KeyForm>& stop_options() {
  static const std::vector<KeyForm> keys = [] {
    std::vector<KeyForm> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back({"drop", KeyKind::flag, "",
                   "drop its model too: for a job that nobody follows any more", "Options"});
    return all;
  }();
  return keys;
}

Result<int> stop_command(const Settings& settings) {
  say_nothing_of_saving();
  auto chosen = choose_job(settings);
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return job_failed;
  auto& [access, snapshot, id] = **chosen;
  const JobSnapshot& job = snapshot.jobs.at(id);
  const bool is_prepared = job.state() != wire::JobState::preparing;
  const bool drops = !place_of(settings, "drop").empty();
  // Silent nodes may run the job, and closing it would drop its model.
  if (const std::string names = unheard(snapshot); !is_prepared && !drops && !names.empty()) {
    print_error(
        "job " + job.name + " is not stopped: no answer from " + names +
        ", where it may have begun; the same command asks again, and `stop --drop` drops it, "
        "begun or not");
    return job_failed;
  }
  std::string silent;
  for (const core::NodeRecord& node : snapshot.nodes) {
    if (!core::is_live(node.state) || snapshot.revoked.contains(node.id)) continue;
    if (!access.client->ask(node.address, request_for(id, job, drops), 5s))
      silent += (silent.empty() ? "" : ", ") + node.name;
  }
  if (!silent.empty()) {
    print_error("no answer from " + silent + "; the same command asks them again");
    return job_failed;
  }
  const std::string said =
      drops          ? ": dropped\n"
      : !is_prepared ? ": stopped before it began\n"
                     : ": stops at the end of its steps; whoever follows it saves the model, or, "
                       "where nobody does, `attach --save FILE`\n";
  return write_stdout("job " + job.name + said, done);
}

}  // namespace starling::program
