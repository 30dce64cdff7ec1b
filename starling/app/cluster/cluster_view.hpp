/// What all nodes of a cluster say of themselves and of their jobs, in one picture.
#pragma once

#include <chrono>
#include <map>
#include <optional>
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
  /// The latest that any node knows.
  core::ConfigurationPtr configuration;
  std::map<core::WorkerId, MemberView> members;
  /// Who has submitted it.
  std::string client;
  /// Why it waits, and why it was given up, as nodes of the latest epoch say; empty where not.
  core::Epoch told_epoch = 0;
  std::string hindrance;
  std::string failure;

  /// Updates that its workers have made, as far as they are known.
  [[nodiscard]] std::uint64_t updates() const;
  /// Of those who work and belong to it, ascending.
  [[nodiscard]] std::vector<core::Step> steps() const;
};

struct ClusterView {
  std::chrono::steady_clock::time_point when;
  /// As the door knows them, itself first.
  std::vector<core::MemberRecord> nodes;
  /// Of those that answered.
  std::map<core::MemberId, core::MembershipCounts> counts;
  std::map<wire::JobId, JobView> jobs;
};

/// What a job is, as far as it was told: "softmax on digits, peer, pssp:s=4,beta=2".
[[nodiscard]] std::string summary_of(const wire::JobSettings& settings);

/// The key `job`, in a group of the help.
[[nodiscard]] KeyForm job_key(const char* group);

/// Asks the door, and then the others that live unless only what is `here`, at the door, is wanted.
/// Whoever does not answer within a second is left out; an Error where the door does not.
[[nodiscard]] Result<ClusterView> look_at(Access& access, bool here);

/// A job that a command is about.
struct ChosenJob {
  Access access;
  ClusterView view;
  wire::JobId job = 0;
};
/// By its number, or the only one. Nothing where the node does not answer, which was said then.
[[nodiscard]] Result<std::optional<ChosenJob>> choose_job(const Settings& settings);

}  // namespace starling::app
