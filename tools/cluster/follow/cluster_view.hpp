/// The state of all nodes of a cluster and of their jobs, joined from the nodes' reports.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

struct MemberView {
  wire::MemberStatus status;
  /// The name of the node that it is on.
  std::string node;
};

struct JobView {
  wire::JobSettings settings;
  /// The name that people use for it.
  std::string name;
  /// The latest configuration that any node knows.
  core::ConfigurationPtr configuration;
  std::map<core::MemberId, MemberView> members;
  /// The client that has submitted it.
  std::string client;
  /// The epoch of the latest report, why the job waits, and why it was given up, as nodes of that
  /// epoch report; the texts are empty where it does not and was not.
  core::Epoch told_epoch = 0;
  std::string blocked_reason;
  std::string give_up_reason;
  /// The state that its nodes report: `done` and `stopped` are what workers were told to become.
  wire::JobState told = wire::JobState::preparing;
  /// When it began, or was accepted: ms since 1970, UTC.
  std::int64_t since_ms = 0;
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

struct ClusterView {
  std::chrono::steady_clock::time_point when;
  /// The nodes that the seed node knows, itself first. A node that came back under its name is
  /// listed once.
  std::vector<core::NodeRecord> nodes;
  /// The nodes among them whose certificate was revoked.
  std::set<core::NodeId> revoked;
  /// Membership counts of the nodes that answered.
  std::map<core::NodeId, core::MembershipCounts> counts;
  std::map<wire::JobId, JobView> jobs;

  /// The addresses of the nodes that may answer: those that are live and not revoked.
  [[nodiscard]] std::vector<std::string> live_addresses() const;
};

[[nodiscard]] std::string print(wire::JobState state);

/// The key `job`, in a group of the help.
[[nodiscard]] KeyForm job_key(const char* group);

/// Asks the seed node, and then, unless only the jobs `here` on it are wanted, all other live
/// nodes. Leaves out nodes that do not answer in time; fails if the seed node does not answer.
[[nodiscard]] Result<ClusterView> look_at(Access& access, bool here,
                                          std::chrono::milliseconds within = std::chrono::seconds{
                                              1});

/// Returns the job that the key `job` names by its name, its number or the beginning of either;
/// without the key the only job.
[[nodiscard]] Result<wire::JobId> which_job(const Settings& settings, const ClusterView& view);

/// Returns the jobs that have ended, as the nodes of `view` that answered keep them, each once.
[[nodiscard]] std::map<wire::JobId, wire::JobRecord> ended_jobs(Access& access,
                                                                const ClusterView& view);

/// The job that a command is about.
struct ChosenJob {
  Access access;
  ClusterView view;
  wire::JobId job = 0;
};
/// Chooses the job as which_job() does. Returns nothing where the seed node does not answer, after
/// printing the error.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::program
