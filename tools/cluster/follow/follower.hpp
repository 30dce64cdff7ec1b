/// Follows a job that runs on nodes: where its members are, how far they are, and the final model.
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

/// The state of a job, as far as its nodes report it.
struct JobNews {
  actor::Progress progress;
  double mean_step = 0;
  /// True once the step of at least one worker is known.
  bool begun = false;
  /// True if all workers have made their last step.
  bool done = false;
  /// True if all workers are paused: no update is in flight.
  bool is_paused = false;
  /// Why it cannot go on; empty where it can.
  std::string failure;
  /// Incarnations of workers that have died or left so far.
  std::uint64_t workers_lost = 0;
  /// The names of nodes that are dead or have left and still have members of the job; empty where
  /// there are none.
  std::string missing;
  /// Why it waits now, and for which nodes; empty where it does not wait.
  std::string blocked_reason;
};

/// How long a caller waits for a model.
struct Patience {
  /// For one reply. Ranges are large, and networks may be slow.
  std::chrono::seconds for_one;
  /// In all, counted anew from each range that arrives.
  std::chrono::seconds in_all;
};
/// `little` suits a model that can be fetched later too.
inline constexpr Patience little{std::chrono::seconds{3}, std::chrono::seconds{6}};
inline constexpr Patience much{std::chrono::seconds{60}, std::chrono::seconds{30}};

/// One thread at a time; blocking.
class Follower {
 public:
  /// Asks the node at `seed` first, then all nodes that it knows. Gives up where none has answered
  /// for `patience`. `client` outlives it.
  Follower(actor::ClusterClient& client, std::string seed, wire::JobId job,
           std::chrono::nanoseconds patience = std::chrono::seconds{30})
      : client_(client), job_(job), patience_(patience), addresses_{std::move(seed)} {}

  /// Asks the nodes. Returns an Error where none has answered for `patience`, or those that do have
  /// dropped the job.
  [[nodiscard]] Result<JobNews> look();
  /// True once the nodes that answer have dropped the job.
  [[nodiscard]] bool is_dropped() const { return is_dropped_; }
  /// Returns the events since the last call, a line each: nodes that were lost with workers, and
  /// changes in the number of replicas.
  [[nodiscard]] std::vector<std::string> take_news() { return std::exchange(news_, {}); }
  /// Has workers end after their current step: the job is done, or is stopped early.
  void stop(bool is_done);
  /// Fetches all ranges, by number, each from its primary, for other owners may hold an older
  /// state. An Error names a range that could not be fetched.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch(const core::Layout& layout,
                                                            Patience patience);
  /// Fetches a consistent cut, from which a job with `options` can resume: each worker's last step
  /// is the same in all ranges. Workers pause meanwhile. An Error where they do not, or members
  /// come or go; the job runs on, and the caller may try again.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch_cut(const core::Layout& layout,
                                                                const actor::TrainOptions& options,
                                                                Patience patience);
  /// Has nodes drop the job, which nobody needs any more; `summary` says how it went.
  void close(wire::JobSummary summary);

 private:
  using Clock = std::chrono::steady_clock;
  /// Nodes that take longer to answer count as silent.
  static constexpr std::chrono::seconds answer_within{2};

  void receive(const std::string& address, const wire::NodeStatus& status);
  void receive(const core::NodeRecord& node);
  void receive(const wire::JobStatus& status);
  /// Returns the addresses to ask at this look: not those that were silent a moment ago.
  [[nodiscard]] std::vector<std::string> addresses_to_ask() const;
  void lose(const core::Configuration& next);
  [[nodiscard]] std::string missing() const;
  /// Has the nodes with members of the job pause it; true if all of them acknowledge.
  bool pause(std::chrono::milliseconds duration);
  [[nodiscard]] Result<void> await_pause();
  /// Returns the nodes with members of the job.
  [[nodiscard]] std::set<wire::NodeId> member_nodes() const;
  /// False if the address of such a node is unknown or it was silent when it was asked last.
  [[nodiscard]] bool all_answer() const;
  static void settle(std::vector<core::RangeState>& states,
                     const std::map<core::MemberId, core::LedgerEntry>& standing,
                     const actor::JobOptions& options);
  /// Returns the incarnation, step and samples of each worker.
  [[nodiscard]] std::map<core::MemberId, core::LedgerEntry> standing() const;
  [[nodiscard]] Result<std::vector<core::RangeState>> read(const core::Layout& layout,
                                                           bool with_state, Patience patience);
  [[nodiscard]] JobNews news();
  [[nodiscard]] bool is_member(const wire::MemberStatus& member) const;
  /// Returns the address of the primary of `range`; empty where it is unknown.
  [[nodiscard]] std::string primary_of(std::size_t range) const;

  actor::ClusterClient& client_;
  wire::JobId job_;
  std::chrono::nanoseconds patience_;
  std::set<std::string> addresses_;
  /// The addresses among these that did not answer, and when they did not.
  std::map<std::string, Clock::time_point> silent_;
  Clock::time_point heard_ = Clock::now();
  /// When a node last had the job, or none of its nodes answered.
  Clock::time_point had_ = Clock::now();
  bool is_dropped_ = false;
  /// True if a node that answered at this look has the job.
  bool is_known_ = false;
  /// The latest epoch that nodes report at this look, and why its nodes wait or have given up.
  core::Epoch reported_epoch_ = 0;
  std::string blocked_reason_;
  std::string give_up_reason_;
  /// Addresses by node.
  std::map<wire::NodeId, std::string> nodes_;
  /// The latest record that any node has sent of each.
  std::map<wire::NodeId, core::NodeRecord> records_;
  /// The nodes that answered at the last look.
  std::set<wire::NodeId> heard_now_;
  core::ConfigurationPtr configuration_;
  std::map<core::MemberId, wire::MemberStatus> members_;
  Clock::time_point paused_at_{};
  std::uint64_t workers_lost_ = 0;
  CopyWatch copies_;
  std::vector<std::string> news_;
  std::uint64_t losses_ = 0;
  double loss_sum_ = 0;
  double loss_ = 0;
  /// When the job began; the last look while no configuration is known.
  Clock::time_point began_ = Clock::now();
};

}  // namespace starling::program
