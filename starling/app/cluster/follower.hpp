/// Follows a job that runs on nodes: who is where, how far, and the model at the end.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "starling/engine/live/cluster_client.hpp"
#include "starling/engine/live/job.hpp"

namespace starling::app {

/// How a job stands, as far as its nodes say.
struct JobNews {
  live::Progress progress;
  /// Everyone who works has made the last step.
  bool done = false;
  /// Why it cannot go on; empty where it can.
  std::string failure;
};

/// One thread at a time; blocking.
class Follower {
 public:
  /// Asks the node at `door` first, and whomever it knows. `client` outlives it.
  Follower(live::ClusterClient& client, std::string door, wire::JobId job)
      : client_(client), job_(job), addresses_{std::move(door)} {}

  /// An Error where no node answers any more.
  [[nodiscard]] Result<JobNews> look();
  /// Workers end with the step that they are making.
  void stop();
  /// All of `ranges` ranges, by number, each from its primary: others may hold it as it was. An
  /// Error names one that nobody has.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch(std::size_t ranges);
  /// Nobody needs the job any more.
  void close();

 private:
  void hear(const wire::JobStatus& status);
  [[nodiscard]] JobNews news();
  [[nodiscard]] bool is_member(const wire::MemberStatus& member) const;
  /// Where range `range` is to be had, as far as is known.
  [[nodiscard]] std::string primary_of(std::size_t range) const;

  live::ClusterClient& client_;
  wire::JobId job_;
  std::set<std::string> addresses_;
  /// By node.
  std::map<wire::NodeId, std::string> nodes_;
  core::ConfigurationPtr configuration_;
  std::map<core::WorkerId, wire::MemberStatus> members_;
  core::Step max_lag_ = 0;
  std::uint64_t losses_ = 0;
  double loss_sum_ = 0;
  double loss_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace starling::app
