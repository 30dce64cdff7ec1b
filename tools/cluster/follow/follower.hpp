/// Follows a job that runs on nodes: asks the nodes for the job's progress, and fetches its model.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/tools/cluster/follow/merged_job.hpp"
#include "starling/tools/cluster/follow/replicas.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The progress of a job, merged from the latest reports of its nodes.
struct JobReport {
  actor::Progress progress;
  /// The mean of the workers' steps.
  double mean_step = 0;
  /// True once the step of at least one worker is known.
  bool has_begun = false;
  /// True if all workers have ended: they have made all steps, or were stopped.
  bool is_done = false;
  /// How long after the job's start its workers had ended. Requires: is_done.
  core::Time ended_after{};
  /// True if all workers are paused, so that no update is in flight.
  bool is_paused = false;
  /// The reason why the job cannot go on; empty if it can.
  std::string failure;
  /// The fates of the workers so far. A worker that was restarted and lost again counts
  /// twice.
  WorkerFates workers = {};
  /// True if all workers have made their last step; absent unless the samples were dealt anew, the
  /// batches are dynamic, or workers hand in early.
  std::optional<bool> has_made_all_steps = std::nullopt;
  /// The names of the nodes that are dead or have left and whose members the latest configuration
  /// still has; empty if there are none.
  std::string missing_nodes;
  /// The reason why the job cannot go on now, and the nodes for which it waits; empty if it goes
  /// on.
  std::string blocked_reason;
};

/// The states of all ranges at one moment, from which a job can go on.
struct ModelCut {
  std::vector<core::RangeState> states;
  /// How samples were dealt before; see actor::JobOptions::former_deals.
  std::vector<models::FormerDeal> former_deals;
  /// How many updates the job has made up to this moment, without those before it resumed.
  std::uint64_t updates = 0;
};

/// How long Follower waits for the ranges of a model.
struct FetchTimeouts {
  /// The time for one reply, which may hold many large ranges.
  std::chrono::milliseconds reply;
  /// The time from the arrival of one range to that of the next.
  std::chrono::milliseconds progress;
};
/// For a model that the caller soon tries to fetch again, so that it can show progress meanwhile:
/// asks each node once or twice.
inline constexpr FetchTimeouts one_try{std::chrono::seconds{3}, std::chrono::milliseconds{50}};
/// For a model that can be fetched again later.
inline constexpr FetchTimeouts short_timeouts{std::chrono::seconds{3}, std::chrono::seconds{6}};
/// For the final model.
inline constexpr FetchTimeouts long_timeouts{std::chrono::seconds{60}, std::chrono::seconds{30}};

/// Follows one job. Blocking; not thread-safe.
class Follower {
 public:
  /// The first poll asks the node at `seed`, later ones all nodes that a node has named. Gives up
  /// if no node of the job has answered for `silence_max`. Requires: `client` outlives the object.
  Follower(actor::ClusterClient& client, std::string seed, wire::JobId job,
           std::chrono::nanoseconds silence_max = std::chrono::seconds{30})
      : client_(client), job_(job), silence_max_(silence_max), addresses_{std::move(seed)} {}

  /// Asks the nodes for the state of the job. If `awaits_all`, waits for the reply of each node
  /// that has answered recently; else a node that answers late, or is dead, delays the report by at
  /// most `grace`, and its last report counts. Returns an Error if no node has answered for
  /// `silence_max`, or if nodes answer but none of them has the job any more.
  [[nodiscard]] Result<JobReport> poll(bool awaits_all = false);
  /// True if the last poll found that the nodes have dropped the job.
  [[nodiscard]] bool is_dropped() const { return is_dropped_; }
  /// Returns the addresses of the nodes that have answered at the last poll.
  [[nodiscard]] std::map<wire::NodeId, std::string> answering_nodes() const;
  /// Returns the nodes with members of the job; none before a node has named them.
  [[nodiscard]] std::set<wire::NodeId> member_nodes() const;
  /// Returns the node's name; "(name unknown)" if the node is not known.
  [[nodiscard]] std::string name_of(wire::NodeId node) const;
  /// Returns a message for each event since the last call: a node was lost with its workers, a node
  /// has joined with workers, or the number of replicas of the model has changed.
  [[nodiscard]] std::vector<std::string> take_events() { return std::exchange(events_, {}); }
  /// Asks the workers to end after their current step. `is_done` is true if the job has reached its
  /// goal, and false if it is stopped early.
  void stop_job(bool is_done);
  /// Fetches the values of all ranges, in the order of their ids. Fetches each range from the
  /// member that serves reads of it, because other members may hold an older state. An Error names
  /// a range that could not be fetched.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch(const core::Layout& layout,
                                                            FetchTimeouts timeouts);
  /// Fetches a consistent cut of the values and the optimiser's state, from which a job with
  /// `options` can resume: all ranges have counted the same steps of each worker. Pauses the
  /// workers meanwhile. Returns an Error if they do not pause, or if members come or go; the job
  /// then goes on, and the caller may try again. `samples` is the number of training samples.
  [[nodiscard]] Result<ModelCut> fetch_cut(const core::Layout& layout,
                                           const actor::TrainOptions& options,
                                           std::uint64_t samples, FetchTimeouts timeouts);
  /// Asks the nodes to drop the job and its model, and to keep `summary`.
  void close_job(wire::JobSummary summary);

 private:
  using Clock = std::chrono::steady_clock;
  /// A node that takes longer to answer counts as silent.
  static constexpr std::chrono::seconds reply_timeout{2};
  /// How long a poll waits for other nodes once one has answered.
  static constexpr std::chrono::milliseconds grace{250};

  /// Asks for the job's status, and stores the replies. If `with_nodes`, they list all nodes.
  void ask(const std::vector<std::string>& addresses, bool with_nodes, bool awaits_all);
  /// Store the status of the node at `address`, a record of any node, and a node's report of the
  /// job.
  void receive(const std::string& address, const wire::NodeStatus& status);
  void receive(const core::NodeRecord& node);
  void receive(const wire::JobStatus& status, const std::string& node);
  /// Returns the addresses to ask at this poll: all but those that were silent at a recent one.
  [[nodiscard]] std::vector<std::string> addresses_to_ask() const;
  /// Returns the addresses of the nodes that have answered when they were asked last; all addresses
  /// if there is none.
  [[nodiscard]] std::vector<std::string> answering_addresses() const;
  /// Notes the workers that `next` has no longer, and adds an event for each node whose workers
  /// have gone or come. `next` is a later configuration than `former`.
  void note_changes(const core::Configuration& former, const core::Configuration& next);
  /// Returns how many of the workers of nodes that were lost have left, and how many have died.
  [[nodiscard]] WorkerFates fates_of_lost() const;
  /// Returns the value of JobReport::missing_nodes.
  [[nodiscard]] std::string missing_nodes() const;
  /// Asks the nodes with members of the job to pause their workers for `duration`; 0 ends a pause.
  /// Returns true if all of these nodes acknowledge.
  bool pause(std::chrono::milliseconds duration);
  /// Polls until all workers are paused, and renews the pause meanwhile.
  [[nodiscard]] Result<void> await_pause();
  /// True if each node with members of the job has a known address and has answered when it was
  /// asked last.
  [[nodiscard]] bool have_all_members_answered() const;
  /// Makes the entry of each worker the same in the ledgers of all ranges. `workers` has the
  /// entries of the live workers. Does nothing under BSP.
  static void align_ledgers(std::vector<core::RangeState>& states,
                            const std::map<core::MemberId, core::LedgerEntry>& workers,
                            const actor::JobOptions& options);
  /// Returns the current deal of the job if the members have changed since the job began, or if
  /// deals may change without that (dynamic batches, and barriers that hand in early). Else, or if
  /// the job deals no samples, returns nullopt.
  [[nodiscard]] Result<std::optional<core::Deal>> fetch_deal(const actor::TrainOptions& options);
  /// Ends the deal by which samples were dealt up to a cut. Returns all deals so far, and changes
  /// `states`, the states of the cut, so that a job can go on from them (program::end_deal()).
  [[nodiscard]] Result<std::vector<models::FormerDeal>> end_deal(
      const core::Deal& deal, const actor::TrainOptions& options, std::uint64_t samples,
      std::vector<core::RangeState>& states) const;
  /// Returns the incarnation, step and samples of each worker, as it reports them.
  [[nodiscard]] std::map<core::MemberId, core::LedgerEntry> worker_entries() const;
  [[nodiscard]] Result<std::vector<core::RangeState>> read_paused(const core::Layout& layout,
                                                                  const FetchTimeouts& timeouts);
  /// Reads all ranges. With `with_slots_and_ledger`, also reads the optimiser's slots and the
  /// ledgers, and renews the pause meanwhile.
  [[nodiscard]] Result<std::vector<core::RangeState>> read(const core::Layout& layout,
                                                           bool with_slots_and_ledger,
                                                           FetchTimeouts timeouts);
  [[nodiscard]] JobReport make_report();
  /// Returns the address of the node that serves reads of `range`; empty if it is unknown.
  [[nodiscard]] std::string address_of(core::RangeId range) const;

  actor::ClusterClient& client_;
  wire::JobId job_;
  std::chrono::nanoseconds silence_max_;
  /// The addresses of the nodes to ask.
  std::set<std::string> addresses_;
  /// For each address that has not answered since it was asked: the time of the first request.
  std::map<std::string, Clock::time_point> unanswered_since_;
  /// For each address in `unanswered_since_` that counts as silent: the time of the last request.
  std::map<std::string, Clock::time_point> silent_at_;
  /// The last time at which a node of the job answered; before these are known, any node.
  Clock::time_point answered_at_ = Clock::now();
  /// The time of the last poll at which the job may still have been there: a node had it, or none
  /// of its nodes answered.
  Clock::time_point not_missing_at_ = Clock::now();
  bool is_dropped_ = false;
  /// True if a node that answered at this poll has the job.
  bool is_job_reported_ = false;
  std::map<wire::NodeId, std::string> address_of_node_;
  /// The latest record of each node that any node has sent.
  std::map<wire::NodeId, core::NodeRecord> records_;
  /// The nodes that answered at the last poll.
  std::set<wire::NodeId> answering_nodes_;
  /// The merged reports.
  MergedJob merged_;
  /// The configuration up to which changes were noted; null before the first.
  core::ConfigurationPtr noted_;
  /// When a node last listed the others.
  Clock::time_point listed_at_{};
  /// The name of the job's exchange.
  std::string exchange_ = actor::JobOptions{}.exchange;
  /// The time of the last request for a pause.
  Clock::time_point paused_at_{};
  /// The node of each worker that was lost.
  std::vector<wire::NodeId> lost_workers_;
  ReplicaMonitor replica_monitor_;
  /// The replication factor of the job.
  std::size_t replicas_wanted_ = 0;
  std::vector<std::string> events_;
  /// The number and the sum of the losses that workers have reported, and the mean of those that
  /// came with the last poll that brought new ones.
  std::uint64_t loss_count_ = 0;
  double loss_sum_ = 0;
  double loss_ = 0;
  /// The greatest age of the job at which a node has reported a step or the end of a worker.
  core::Time last_age_{};
  /// The estimated time at which the job began; while no configuration is known, the time of the
  /// last poll.
  Clock::time_point began_at_ = Clock::now();
};

}  // namespace starling::program
