/// The state of all nodes of a cluster and of their jobs at one time, joined from the nodes'
/// reports.
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
  /// The name of the node that it is on.
  std::string node;
};

struct JobSnapshot {
  wire::JobSettings settings;
  /// The name that people use for it.
  std::string name;
  /// The latest configuration that any node knows.
  core::ConfigurationPtr configuration;
  std::map<core::MemberId, MemberSnapshot> members;
  /// The client that has submitted it.
  std::string client;
  /// The latest epoch that a node has reported, and what nodes in this epoch report: why the job is
  /// blocked, and why it was given up; each is empty where it is not so.
  core::Epoch reported_epoch = 0;
  std::string blocked_reason;
  std::string give_up_reason;
  /// The state that its nodes report: `done` and `stopped` as soon as its workers were asked to
  /// end.
  wire::JobState reported_state = wire::JobState::preparing;
  /// When it began, or was accepted: ms since 1970, UTC.
  std::int64_t since_ms = 0;
  /// The job's age, in ms, when a worker last completed a step; 0 where none has.
  std::uint64_t last_step_ms = 0;
  core::Step steps_total = 0;
  core::Step steps_per_pass = 0;
  std::uint64_t time_limit_ms = 0;
  /// Sums over all nodes, for the last few seconds.
  double updates_per_s = 0;
  double loss_sum = 0;
  std::uint64_t loss_count = 0;

  [[nodiscard]] wire::JobState state() const;
  /// Returns why it has failed; empty where it has not.
  [[nodiscard]] std::string why() const;
  /// Updates that its workers have made, as far as they are known.
  [[nodiscard]] std::uint64_t updates() const;
  /// The steps of the workers that the configuration has, ascending.
  [[nodiscard]] std::vector<core::Step> steps() const;
  /// The mean over the batches of the last seconds; nothing where there were none.
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

  /// The addresses of the nodes that may answer: those that are live and not revoked.
  [[nodiscard]] std::vector<std::string> live_addresses() const;
};

[[nodiscard]] std::string print(wire::JobState state);

/// The key `job`, in a group of the help.
[[nodiscard]] KeyForm job_key(const char* group);

enum class SnapshotScope { all_nodes, seed_node };

/// Asks the seed node and, in scope `all_nodes`, then all other live nodes. Leaves out nodes that
/// do not answer within `timeout`; fails if the seed node does not answer.
[[nodiscard]] Result<ClusterSnapshot> take_snapshot(
    Access& access, SnapshotScope scope,
    std::chrono::milliseconds timeout = std::chrono::seconds{1});

/// Returns the job that the key `job` names by its name, its number or the beginning of either;
/// without the key the only job.
[[nodiscard]] Result<wire::JobId> which_job(const Settings& settings,
                                            const ClusterSnapshot& snapshot);

/// Returns the jobs that have ended, as the nodes of `snapshot` that answered keep them, each once.
[[nodiscard]] std::map<wire::JobId, wire::JobRecord> ended_jobs(Access& access,
                                                                const ClusterSnapshot& snapshot);

/// The job that a command is about.
struct ChosenJob {
  Access access;
  ClusterSnapshot snapshot;
  wire::JobId job = 0;
};
/// Chooses the job as which_job() does. Returns nothing where the seed node does not answer, after
/// printing the error.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::program
