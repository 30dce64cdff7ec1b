/// The state of all nodes of a cluster and of their jobs, merged from the replies of the nodes to
/// one round of requests.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/tools/cluster/follow/flow_stages.hpp"
#include "starling/tools/cluster/follow/merged_job.hpp"
#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

/// A job, as the replies of the nodes describe it.
struct JobSnapshot : MergedJob {
  wire::JobSettings settings;
  /// The name by which users call the job.
  std::string name;
  /// The number of updates in the checkpoint from which the job went on; 0 without one.
  std::uint64_t updates_before = 0;
  /// The number of ranges of the model; 0 if no node knows it yet.
  std::uint32_t ranges = 0;
  /// The client that submitted the job.
  std::string client;
  /// The most advanced state that a node reports. It is `done` or `stopped` from the moment at
  /// which the workers are asked to end, when they may still compute; state() takes that into
  /// account.
  wire::JobState reported_state = wire::JobState::preparing;
  /// The time at which the job began, or, before that, was accepted, by the clock of this program:
  /// ms since 1970, UTC.
  std::int64_t started_ms = 0;
  /// The job's age, in ms, when a worker last completed a step; 0 if none has.
  std::uint64_t last_step_ms = 0;
  /// The number of steps that each worker has to make, 0 if it is not limited; and the number of
  /// steps of one pass over the training data, 0 if it is not known. Both are those with which the
  /// job began.
  core::Step steps_total = 0;
  core::Step steps_per_data_epoch = 0;
  /// 0 if the job has no time limit.
  std::uint64_t time_limit_ms = 0;
  /// The updates per second of the last few seconds, summed over all nodes; the sum of the losses
  /// and their number. If a node made updates in these seconds (`has_recent_loss`), the losses are
  /// those of such nodes only; else they are the last losses of every node.
  double updates_per_s = 0;
  double loss_sum = 0;
  std::uint64_t loss_count = 0;
  bool has_recent_loss = false;
  /// The stages of a flow; empty before ask_for_stages().
  FlowStages stages = {};

  /// True if the job runs a flow, so that it has no model and makes no steps.
  [[nodiscard]] bool is_flow() const;
  /// Returns the nodes with members of the latest configuration.
  [[nodiscard]] std::set<wire::NodeId> nodes() const;
  /// Returns the state of the job as a whole: `failed` if failure_reason() is not empty;
  /// `preparing` before the job begins; `running` until all workers of the latest configuration
  /// have ended; then `done` or `stopped`.
  [[nodiscard]] wire::JobState state() const;
  /// Returns why the job has failed; empty if it has not.
  [[nodiscard]] std::string failure_reason() const;
  /// Returns the sum of updates_made() and the updates before the job resumed.
  [[nodiscard]] std::uint64_t updates() const { return updates_before + updates_made(); }
  /// Returns the steps of the workers in the configuration, ascending.
  [[nodiscard]] std::vector<core::Step> steps() const;
  /// Returns the steps that each worker has to make; 0 if their number is not limited. If the
  /// samples were dealt anew, they are those of the worker that makes most.
  [[nodiscard]] core::Step last_step() const;
  /// Returns the median, over the workers, of the number of passes over the training data; nullopt
  /// if the job has no training data, or if no node knows `steps_per_data_epoch` yet.
  [[nodiscard]] std::optional<double> data_epoch() const;
  /// Returns the mean of the `loss_count` losses; nothing if there are none.
  [[nodiscard]] std::optional<double> loss() const;
};

struct ClusterSnapshot {
  std::chrono::steady_clock::time_point taken_at;
  /// The seed node (Access::seed), and then the nodes that it knows, in the order in which it has
  /// last seen them come or go, without those that erase_replaced_nodes() erases.
  std::vector<core::NodeRecord> nodes;
  /// The nodes whose certificate was revoked.
  std::set<core::NodeId> revoked;
  /// Membership counts of the nodes that have answered; has no entry for other nodes.
  std::map<core::NodeId, core::MembershipCounts> counts;
  std::map<wire::JobId, JobSnapshot> jobs;

  /// Returns the addresses of the nodes that are live and not revoked.
  [[nodiscard]] std::vector<std::string> live_addresses() const;
  /// Returns the addresses of the nodes that have answered.
  [[nodiscard]] std::vector<std::string> answering_addresses() const;
  /// Returns the names, separated by commas, of the live nodes that are not revoked and whose id is
  /// not in `excluded`.
  [[nodiscard]] std::string live_names_except(const std::set<core::NodeId>& excluded) const;
};

/// Erases a dead node, or one that has left, if a live node or a later node in `nodes` has its
/// name. Nodes without a name stay. Requires: if two processes had one name, the later one comes
/// last.
void erase_replaced_nodes(std::vector<core::NodeRecord>& nodes);

[[nodiscard]] std::string print(wire::JobState state);

/// Returns the description of the option `job`, for the group `group` of the help.
[[nodiscard]] KeyDescription job_key(const char* group);

enum class SnapshotScope { all_nodes, seed_node };

/// Asks the seed node for its status and then, in scope `all_nodes`, all other live nodes for
/// theirs. Other nodes that do not answer within `timeout` are listed, but without their counts and
/// what they report about jobs. Returns an Error if the seed node does not answer.
[[nodiscard]] Result<ClusterSnapshot> take_snapshot(
    Access& access, SnapshotScope scope,
    std::chrono::milliseconds timeout = std::chrono::seconds{1});

/// Asks the nodes that answered for `snapshot`, or in scope `seed_node` only the seed node, for
/// their reports of the flows in `snapshot`, and adds the reports to JobSnapshot::stages. Waits at
/// most `timeout` for each flow.
void ask_for_stages(Access& access, ClusterSnapshot& snapshot, SnapshotScope scope,
                    std::chrono::milliseconds timeout = std::chrono::seconds{1});

/// Returns the job that the option `job` names by its name, its number or the beginning of either;
/// the only job if the option is not set.
[[nodiscard]] Result<wire::JobId> find_requested_job(const Settings& settings,
                                                     const ClusterSnapshot& snapshot);

/// The jobs that have ended within a day, as nodes report them.
struct EndedJobs {
  std::map<wire::JobId, wire::JobRecord> records;
  /// The names of the live nodes that have not sent their records, separated by commas.
  std::string silent_nodes;
};
/// Asks the nodes that answered for `snapshot` for their records of ended jobs, and merges the
/// records of each job.
[[nodiscard]] EndedJobs ended_jobs(Access& access, const ClusterSnapshot& snapshot);

/// The job on which a command acts, and the access and the snapshot by which it was found.
struct ChosenJob {
  Access access;
  ClusterSnapshot snapshot;
  wire::JobId job = 0;
};
/// Opens access, takes a snapshot of all nodes, and chooses a job as find_requested_job() does. If
/// the seed node does not answer, prints the error and returns nothing. If the job has ended within
/// a day, the Error says how it ended.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::program
