/// Follows a job that runs on nodes: asks them how far its members are, and fetches the model.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/tools/cluster/follow/copies.hpp"

namespace starling::program {

/// The progress of a job, as far as its nodes report it.
struct JobReport {
  actor::Progress progress;
  /// The mean of the workers' steps.
  double mean_step = 0;
  /// True once the step of at least one worker is known.
  bool has_begun = false;
  /// True if all workers have made their last step.
  bool is_done = false;
  /// True if all workers are paused: no update is in flight.
  bool is_paused = false;
  /// The reason why the job cannot go on; empty if it can.
  std::string failure;
  /// The number of incarnations of workers that have died or left so far.
  std::uint64_t workers_lost = 0;
  /// The names of nodes that are dead or have left and still have members of the job; empty if
  /// there are none.
  std::string missing_nodes;
  /// The reason why the job is blocked now, and the nodes that it waits for; empty if it is not
  /// blocked.
  std::string blocked_reason;
};

/// How long a caller waits for the ranges of a model.
struct FetchTimeouts {
  /// The time for one reply. Ranges are large, and networks may be slow.
  std::chrono::seconds reply;
  /// The time from one range that arrives to the next.
  std::chrono::seconds progress;
};
/// For a model that can also be fetched later.
inline constexpr FetchTimeouts short_timeouts{std::chrono::seconds{3}, std::chrono::seconds{6}};
/// For the final model.
inline constexpr FetchTimeouts long_timeouts{std::chrono::seconds{60}, std::chrono::seconds{30}};

/// Follows one job. Blocking; one thread at a time.
class Follower {
 public:
  /// Asks the node at `seed` first, then all nodes that it knows. Gives up if none has answered for
  /// `silence_max`. Requires: `client` outlives the object.
  Follower(actor::ClusterClient& client, std::string seed, wire::JobId job,
           std::chrono::nanoseconds silence_max = std::chrono::seconds{30})
      : client_(client), job_(job), silence_max_(silence_max), addresses_{std::move(seed)} {}

  /// Asks the nodes for the state of the job. Returns an Error if none has answered for
  /// `silence_max`, or if those that answer have dropped the job.
  [[nodiscard]] Result<JobReport> poll();
  /// True once the nodes that answer have dropped the job.
  [[nodiscard]] bool is_dropped() const { return is_dropped_; }
  /// Returns the events since the last call, a line each: nodes that were lost with their workers,
  /// and changes in the number of copies of the model.
  [[nodiscard]] std::vector<std::string> take_events() { return std::exchange(events_, {}); }
  /// Asks the workers to end after their current step. `is_done` says that the job has reached its
  /// end; otherwise it is stopped early.
  void stop(bool is_done);
  /// Fetches all ranges, in the order of their ids, each from its primary, because the other owners
  /// may hold an older state. An Error names a range that could not be fetched.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch(const core::Layout& layout,
                                                            FetchTimeouts timeouts);
  /// Fetches a consistent cut, from which a job with `options` can resume: each worker's last step
  /// is the same in all ranges. The workers are paused meanwhile. Returns an Error if they do not
  /// pause, or if members come or go; the job goes on, and the caller may try again.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch_cut(const core::Layout& layout,
                                                                const actor::TrainOptions& options,
                                                                FetchTimeouts timeouts);
  /// Asks the nodes to drop the job, which is needed no longer; they keep `summary`.
  void close(wire::JobSummary summary);

 private:
  using Clock = std::chrono::steady_clock;
  /// A node that takes longer to answer counts as silent.
  static constexpr std::chrono::seconds reply_timeout{2};

  void receive(const std::string& address, const wire::NodeStatus& status);
  void receive(const core::NodeRecord& node);
  void receive(const wire::JobStatus& status);
  /// Returns the addresses to ask at this poll: all but those that were silent a moment ago.
  [[nodiscard]] std::vector<std::string> addresses_to_ask() const;
  /// Counts the workers that `next` no longer has, and notes the loss of their nodes as an event.
  void note_losses(const core::Configuration& next);
  [[nodiscard]] std::string missing_nodes() const;
  /// Asks the nodes with members of the job to pause it for `duration`; 0 ends a pause. Returns
  /// true if all of them acknowledge.
  bool pause(std::chrono::milliseconds duration);
  /// Waits until all workers are paused, and renews the pause meanwhile.
  [[nodiscard]] Result<void> await_pause();
  /// Returns the nodes with members of the job.
  [[nodiscard]] std::set<wire::NodeId> member_nodes() const;
  /// True if the addresses of all nodes with members are known, and each of these nodes answered
  /// when it was asked last.
  [[nodiscard]] bool has_answer_of_all_members() const;
  /// Gives each worker the same entry in the ledgers of all ranges.
  static void align_ledgers(std::vector<core::RangeState>& states,
                            const std::map<core::MemberId, core::LedgerEntry>& workers,
                            const actor::JobOptions& options);
  /// Returns the incarnation, step and samples of each worker.
  [[nodiscard]] std::map<core::MemberId, core::LedgerEntry> worker_entries() const;
  [[nodiscard]] Result<std::vector<core::RangeState>> read(const core::Layout& layout,
                                                           bool with_state, FetchTimeouts timeouts);
  [[nodiscard]] JobReport make_report();
  [[nodiscard]] bool is_member(const wire::MemberStatus& member) const;
  /// Returns the address of the primary of `range`; empty if it is unknown.
  [[nodiscard]] std::string primary_of(std::size_t range) const;

  actor::ClusterClient& client_;
  wire::JobId job_;
  std::chrono::nanoseconds silence_max_;
  std::set<std::string> addresses_;
  /// The addresses among these that did not answer when they were asked last, and the time of that.
  std::map<std::string, Clock::time_point> silent_at_;
  /// The last time at which a node answered.
  Clock::time_point answered_at_ = Clock::now();
  /// The last time at which a node had the job, or none of the job's nodes answered.
  Clock::time_point held_at_ = Clock::now();
  bool is_dropped_ = false;
  /// True if a node that answered at this poll has the job.
  bool is_reported_ = false;
  /// The latest configuration epoch that nodes report at this poll, and the reasons that nodes in
  /// this epoch give for waiting and for giving up.
  core::Epoch reported_epoch_ = 0;
  std::string blocked_reason_;
  std::string give_up_reason_;
  std::map<wire::NodeId, std::string> address_of_node_;
  /// The latest record of each node that any node has sent.
  std::map<wire::NodeId, core::NodeRecord> records_;
  /// The nodes that answered at the last poll.
  std::set<wire::NodeId> answering_nodes_;
  core::ConfigurationPtr configuration_;
  std::map<core::MemberId, wire::MemberStatus> members_;
  /// The time of the last request for a pause.
  Clock::time_point paused_at_{};
  std::uint64_t workers_lost_ = 0;
  CopyMonitor copies_;
  std::vector<std::string> events_;
  /// The number of losses that workers have reported, their sum, and the mean of the latest.
  std::uint64_t loss_count_ = 0;
  double loss_sum_ = 0;
  double loss_ = 0;
  /// The time at which the job began; that of the last poll while no configuration is known.
  Clock::time_point began_at_ = Clock::now();
};

}  // namespace starling::program
