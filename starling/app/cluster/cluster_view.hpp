/// What all nodes of a cluster say of themselves and of their jobs, in one picture.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/app/cluster/access.hpp"

namespace starling::app {

struct MemberView {
  wire::MemberStatus status;
  /// The name of the node that it is on.
  std::string node;
};

struct JobView {
  wire::JobSettings settings;
  /// As people call it.
  std::string name;
  /// The latest that any node knows.
  core::ConfigurationPtr configuration;
  std::map<core::MemberId, MemberView> members;
  /// Who has submitted it.
  std::string client;
  /// Why it waits, and why it was given up, as nodes of the latest epoch say; empty where not.
  core::Epoch told_epoch = 0;
  std::string hindrance;
  std::string failure;
  /// Its nodes' word: `done` and `stopped` are what workers were told to become.
  wire::JobState told = wire::JobState::preparing;
  /// When it began, or was taken: ms since 1970, UTC.
  std::int64_t since_ms = 0;
  std::uint64_t worked_ms = 0;
  core::Step steps_total = 0;
  core::Step steps_in_epoch = 0;
  std::uint64_t time_max_ms = 0;
  /// All nodes together, in the last seconds.
  double updates_per_s = 0;
  double loss_sum = 0;
  std::uint64_t losses = 0;

  [[nodiscard]] wire::JobState state() const;
  /// Why it has failed; empty where it has not.
  [[nodiscard]] std::string why() const;
  /// Updates that its workers have made, as far as they are known.
  [[nodiscard]] std::uint64_t updates() const;
  /// Of those who work and belong to it, ascending.
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
  /// Of those that answered.
  std::map<core::NodeId, core::MembershipCounts> counts;
  std::map<wire::JobId, JobView> jobs;

  /// Where the nodes are that may answer.
  [[nodiscard]] std::vector<std::string> live_addresses() const;
};

[[nodiscard]] std::string print(wire::JobState state);

/// The key `job`, in a group of the help.
[[nodiscard]] KeyForm job_key(const char* group);

/// Asks the seed node, and then, unless only what is `here` is wanted, all other live nodes. Leaves
/// out nodes that do not answer in time; fails if the seed node does not.
[[nodiscard]] Result<ClusterView> look_at(Access& access, bool here,
                                          std::chrono::milliseconds within = std::chrono::seconds{
                                              1});

/// The job that the key `job` means, by its name, its number or the beginning of either; without
/// the key the only one.
[[nodiscard]] Result<wire::JobId> which_job(const Settings& settings, const ClusterView& view);

/// The jobs that have ended, as the nodes of `view` that answered keep them, each once.
[[nodiscard]] std::map<wire::JobId, wire::JobRecord> ended_jobs(Access& access,
                                                                const ClusterView& view);

/// A job that a command is about.
struct ChosenJob {
  Access access;
  ClusterView view;
  wire::JobId job = 0;
};
/// As which_job() has it. Nothing where the node does not answer, which was said then.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::app
