#include <set>
#include <string>
#include <vector>

#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Returns the request that ends a job. A job that has not begun, or whose model must be dropped,
/// is closed; any other job is stopped. A job that has ended already keeps its state when it is
/// closed.
wire::RequestBody request_for(wire::JobId id, const JobSnapshot& job, bool must_drop) {
  const wire::JobState state = job.state();
  const bool is_preparing = state == wire::JobState::preparing;
  const std::string why = must_drop ? "dropped by `stop --drop`" : "stopped";
  if (!is_preparing && !must_drop) return wire::StopJob{id};
  if (state == wire::JobState::failed)
    return wire::CloseJob{id, wire::JobSummary{state, job.failure_reason()}};
  if (!is_preparing && state != wire::JobState::running)
    return wire::CloseJob{id, wire::JobSummary{state, why}};
  return wire::CloseJob{id, wire::JobSummary{wire::JobState::stopped, why}};
}

/// Returns the names of the live nodes that have not reported their status.
std::string silent_nodes(const ClusterSnapshot& snapshot) {
  std::set<core::NodeId> answering;
  for (const auto& [node, counts] : snapshot.counts) answering.insert(node);
  return snapshot.live_names_except(answering);
}

}  // namespace

const std::vector<KeyDescription>& stop_options() {
  static const std::vector<KeyDescription> keys = [] {
    std::vector<KeyDescription> all = connection_options("Options");
    all.push_back(job_key("Options"));
    all.push_back({"drop", ValueType::flag, "",
                   "also drop the model of a job that no program follows any more", "Options"});
    return all;
  }();
  return keys;
}

Result<int> stop_command(const Settings& settings) {
  omit_saving_from_signal_message();
  auto chosen = choose_job(settings);
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return job_failed;
  auto& [access, snapshot, id] = **chosen;
  const JobSnapshot& job = snapshot.jobs.at(id);
  const bool has_begun = job.state() != wire::JobState::preparing;
  const bool must_drop = !location_of(settings, "drop").empty();
  // A job that is done is not asked to stop, because nodes would then record it as stopped.
  if (job.state() == wire::JobState::done && !must_drop)
    return write_stdout("job " + job.name + ": is done already; " +
                            (job.is_flow() ? "`attach` prints its result"
                                           : "`attach --save FILE` saves its model") +
                            ", `stop --drop` drops it\n",
                        done);
  // A silent node may already run the job, and closing the job would drop its model.
  if (const std::string names = silent_nodes(snapshot);
      !has_begun && !must_drop && !names.empty()) {
    print_error(
        "job " + job.name + " is not stopped: no answer from " + names +
        ", where it may have begun; the same command asks again, and `stop --drop` drops it, "
        "begun or not");
    return job_failed;
  }
  std::vector<core::NodeRecord> asked;
  for (const core::NodeRecord& node : snapshot.nodes)
    if (core::is_live(node.state) && !snapshot.revoked.contains(node.id)) asked.push_back(node);
  const auto replies =
      access.client->ask_all(snapshot.live_addresses(), request_for(id, job, must_drop), 5s);
  std::string silent;
  bool has_refused = false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!replies[i]) silent += (silent.empty() ? "" : ", ") + asked[i].name;
    const auto* refused = replies[i] ? std::get_if<wire::Refused>(&*replies[i]) : nullptr;
    if (refused == nullptr) continue;
    has_refused = true;
    print_error("node " + asked[i].name + ": " + refused->why);
  }
  if (!silent.empty())
    print_error("no answer from " + silent + "; the same command asks them again");
  if (has_refused || !silent.empty()) return job_failed;
  const std::string message =
      must_drop    ? ": dropped\n"
      : !has_begun ? ": stopped before it began\n"
      : job.state() == wire::JobState::failed
          ? ": has failed (" + job.failure_reason() +
                (job.is_flow() ? "); its other members end"
                               : "); the workers that go on end after their current steps") +
                "; `stop --drop` drops it\n"
      : job.is_flow()
          ? ": its members end; the nodes keep it until the program that follows it, or `attach`, "
            "or `stop --drop` drops it\n"
          : ": its workers end after their current steps; the program that follows it saves "
            "the model, or, without one, `attach --save FILE` does\n";
  return write_stdout("job " + job.name + message, done);
}

}  // namespace starling::program
