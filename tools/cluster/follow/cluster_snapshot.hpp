/// The state of all nodes of a cluster and of their jobs at one time, merged from the reports of
/// the nodes.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

struct MemberSnapshot {
  wire::MemberStatus status;
  /// The name of the member's node.
  std::string node;
};

struct JobSnapshot {
  wire::JobSettings settings;
  /// The name by which users call the job.
  std::string name;
  /// The latest configuration that any node knows.
  core::ConfigurationPtr configuration;
  std::map<core::MemberId, MemberSnapshot> members;
  /// The client that submitted the job.
  std::string client;
  /// The latest configuration epoch that a node has reported, and the reasons that nodes in this
  /// epoch give: why the job is blocked, and why it was given up. A reason is empty if there is
  /// none.
  core::Epoch reported_epoch = 0;
  std::string blocked_reason;
  std::string give_up_reason;
  /// The state that its nodes report. It is `done` or `stopped` from the moment at which the
  /// workers are asked to end.
  wire::JobState reported_state = wire::JobState::preparing;
  /// The time at which the job began, or, before that, was accepted: ms since 1970, UTC.
  std::int64_t started_ms = 0;
  /// The job's age, in ms, when a worker last completed a step; 0 if none has.
  std::uint64_t last_step_ms = 0;
  core::Step steps_total = 0;
  /// Steps of a worker for one pass over the training data; 0 if it is unknown.
  core::Step steps_per_data_epoch = 0;
  std::uint64_t time_limit_ms = 0;
  /// Sums over all nodes, for the last few seconds.
  double updates_per_s = 0;
  double loss_sum = 0;
  std::uint64_t loss_count = 0;

  [[nodiscard]] wire::JobState state() const;
  /// Returns why the job has failed; empty if it has not.
  [[nodiscard]] std::string failure_reason() const;
  /// Returns how many updates its workers have made, as far as nodes have answered.
  [[nodiscard]] std::uint64_t updates() const;
  /// Returns the steps of the workers in the configuration, ascending.
  [[nodiscard]] std::vector<core::Step> steps() const;
  /// Returns the mean loss over the batches of the last seconds; nothing if there were none.
  [[nodiscard]] std::optional<double> loss() const;
};

struct ClusterSnapshot {
  std::chrono::steady_clock::time_point taken_at;
  /// The nodes that the seed node knows, itself first. A node that came back under its name is
  /// listed once.
  std::vector<core::NodeRecord> nodes;
  /// The nodes among them whose certificate was revoked.
  std::set<core::NodeId> revoked;
  /// Membership counts of the nodes that answered.
  std::map<core::NodeId, core::MembershipCounts> counts;
  std::map<wire::JobId, JobSnapshot> jobs;

  /// Returns the addresses of the nodes that are live and not revoked.
  [[nodiscard]] std::vector<std::string> live_addresses() const;
};

[[nodiscard]] std::string print(wire::JobState state);

/// Returns the option `job`, for the group `group` of the help.
[[nodiscard]] KeyDescription job_key(const char* group);

enum class SnapshotScope { all_nodes, seed_node };

/// Asks the seed node for its status and then, in scope `all_nodes`, all other live nodes. Leaves
/// out nodes that do not answer within `timeout`; fails if the seed node does not answer.
[[nodiscard]] Result<ClusterSnapshot> take_snapshot(
    Access& access, SnapshotScope scope,
    std::chrono::milliseconds timeout = std::chrono::seconds{1});

/// Returns the job that the option `job` names by its name, its number or the beginning of either;
/// the only job if the option is not set.
[[nodiscard]] Result<wire::JobId> find_requested_job(const Settings& settings,
                                                     const ClusterSnapshot& snapshot);

/// Returns the records of ended jobs, merged from all nodes that answered for `snapshot`.
[[nodiscard]] std::map<wire::JobId, wire::JobRecord> ended_jobs(Access& access,
                                                                const ClusterSnapshot& snapshot);

/// The job that a command acts on, and the access and snapshot by which it was found.
struct ChosenJob {
  Access access;
  ClusterSnapshot snapshot;
  wire::JobId job = 0;
};
/// Chooses the job as find_requested_job() does. If the seed node does not answer, prints the error
/// and returns nothing.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::program
