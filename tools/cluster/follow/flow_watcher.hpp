/// Watches a job that runs a flow until it ends, and fetches its result.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "starling/tools/cluster/follow/blocked_notice.hpp"
#include "starling/tools/cluster/follow/flow_stages.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/run/run_report.hpp"

namespace starling::program {

/// Blocking; one thread.
class FlowWatcher {
 public:
  /// The fate of the job if this program is interrupted.
  enum class OnLeave { stop_job, leave_running };
  /// The reason why run() has returned.
  enum class End {
    /// The flow has a result.
    done,
    /// The flow was stopped before it had a result.
    stopped,
    /// The flow has failed, or its result was lost with the nodes that had it.
    failed,
    /// The flow has ended, but no node has sent its result. A node that was silent may have it.
    not_fetched,
    /// The nodes have dropped the job.
    dropped,
    /// This program was interrupted, and the job goes on.
    goes_on,
    /// None of the job's nodes answers; the job may go on.
    unreachable,
  };

  /// Requires: the referenced objects outlive this one.
  FlowWatcher(actor::ClusterClient& client, Follower& follower, wire::JobId job, std::string name,
              bool is_quiet, OnLeave on_leave)
      : client_(client),
        follower_(follower),
        job_(job),
        name_(std::move(name)),
        on_leave_(on_leave),
        display_(is_quiet) {}

  /// Watches the job until one of the reasons of End arises. The nodes then still have the job,
  /// unless End::dropped is the reason.
  [[nodiscard]] End run();
  /// The reason why the flow has failed, why its result was not fetched, or why the job cannot be
  /// watched; else empty.
  [[nodiscard]] const std::string& why() const { return why_; }
  /// The result, if there is one, and the seconds that the program of the flow has taken.
  [[nodiscard]] const RunOutcome& outcome() const { return outcome_; }
  [[nodiscard]] double seconds() const { return seconds_; }
  /// The work of the nodes and the fates of the workers, by the last reports.
  [[nodiscard]] const FlowStages& stages() const { return stages_; }
  [[nodiscard]] const WorkerFates& workers() const { return workers_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Asks the nodes what they have computed.
  void update_stages();
  /// Shows how far the flow is.
  void show_progress();
  /// Does the work of run() except for fetching the result.
  [[nodiscard]] End follow();
  /// Prints a message about the job.
  void warn(const std::string& message);
  /// Warns, as BlockedNotice decides, that the job is blocked for `reason` or, if that is empty,
  /// that the job goes on.
  void report_blocked(const std::string& reason);
  /// Asks the nodes for the result. Returns false if none of them sends it.
  [[nodiscard]] bool fetch_result();
  /// True if a node that answers says that the job was stopped.
  [[nodiscard]] bool was_stopped();

  actor::ClusterClient& client_;
  Follower& follower_;
  wire::JobId job_;
  std::string name_;
  OnLeave on_leave_;
  Display display_;
  BlockedNotice blocked_;
  FlowStages stages_;
  WorkerFates workers_;
  std::string why_;
  /// True if a node of the flow has not answered a request for the result.
  bool has_silent_node_ = false;
  bool is_stopping_ = false;
  Clock::time_point start_ = Clock::now();
  RunOutcome outcome_;
  double seconds_ = 0;
};

}  // namespace starling::program
