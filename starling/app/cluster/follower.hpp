/// Follows a job that runs on nodes: who is where, how far, and the model at the end.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/app/cluster/copies.hpp"
#include "starling/engine/live/cluster_client.hpp"
#include "starling/engine/live/train_options.hpp"

namespace starling::app {

/// How a job stands, as far as its nodes say.
struct JobNews {
  live::Progress progress;
  double mean_step = 0;
  /// The step of one at least who works is known.
  bool begun = false;
  /// Everyone who works has made the last step.
  bool done = false;
  /// Nobody's update is under way.
  bool is_paused = false;
  /// Why it cannot go on; empty where it can.
  std::string failure;
  /// Lives of workers that have died or left so far.
  std::uint64_t workers_lost = 0;
  /// The names of nodes that are dead or have left and still have members of it; empty where there
  /// are none.
  std::string missing;
  /// Why it cannot go on now, and whom it waits for; empty where it can.
  std::string hindrance;
};

/// How long a model is waited for.
struct Patience {
  /// For one answer. Ranges are large, and the way may be slow.
  std::chrono::seconds for_one;
  /// Without any that is new.
  std::chrono::seconds in_all;
};
/// For what can be had later too.
inline constexpr Patience little{std::chrono::seconds{3}, std::chrono::seconds{6}};
inline constexpr Patience much{std::chrono::seconds{60}, std::chrono::seconds{30}};

/// One thread at a time; blocking.
class Follower {
 public:
  /// Asks the node at `seed` first, and whomever it knows. Waits for `patience` where none answers.
  /// `client` outlives it.
  Follower(live::ClusterClient& client, std::string seed, wire::JobId job,
           std::chrono::nanoseconds patience = std::chrono::seconds{30})
      : client_(client), job_(job), patience_(patience), addresses_{std::move(seed)} {}

  /// An Error where no node has answered for that long, or those that do have dropped the job.
  [[nodiscard]] Result<JobNews> look();
  /// True once they have.
  [[nodiscard]] bool is_dropped() const { return is_dropped_; }
  /// What has happened since the last call, a line each: nodes that workers were lost with, and
  /// changes in the number of copies.
  [[nodiscard]] std::vector<std::string> take_news() { return std::exchange(news_, {}); }
  /// Workers end with the step that they are making: the job is done, or is cut short.
  void stop(bool is_done);
  /// All ranges, by number, each from its primary: others may hold it as it was. An
  /// Error names one that nobody has.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch(const core::Layout& layout,
                                                            Patience patience);
  /// The same with all that a job can go on from, as `options` have it: each worker's last step is
  /// the same in all ranges. Workers pause meanwhile. An Error where they do not, or
  /// members come or go; the job runs on, and it may be tried again.
  [[nodiscard]] Result<std::vector<core::RangeState>> fetch_cut(const core::Layout& layout,
                                                                const live::TrainOptions& options,
                                                                Patience patience);
  /// Nobody needs the job any more, which went as `summary` says.
  void close(wire::JobSummary summary);

 private:
  using Clock = std::chrono::steady_clock;
  /// Nodes that take longer to answer count as silent.
  static constexpr std::chrono::seconds answer_within{2};

  void receive(const std::string& address, const wire::NodeStatus& status);
  void receive(const core::NodeRecord& node);
  void receive(const wire::JobStatus& status);
  /// The addresses that are worth a question now.
  [[nodiscard]] std::vector<std::string> addresses_to_ask() const;
  void lose(const core::Configuration& next);
  [[nodiscard]] std::string missing() const;
  /// True where all nodes with members of the job have heard it.
  bool pause(std::chrono::milliseconds duration);
  [[nodiscard]] Result<void> await_pause();
  /// Those with members of the job.
  [[nodiscard]] std::set<wire::NodeId> member_nodes() const;
  /// False where one of them was silent when it was asked last.
  [[nodiscard]] bool all_answer() const;
  static void settle(std::vector<core::RangeState>& states,
                     const std::map<core::MemberId, core::LedgerEntry>& standing,
                     const live::JobOptions& options);
  /// Of those that work.
  [[nodiscard]] std::map<core::MemberId, core::LedgerEntry> standing() const;
  [[nodiscard]] Result<std::vector<core::RangeState>> read(const core::Layout& layout, bool whole,
                                                           Patience patience);
  [[nodiscard]] JobNews news();
  [[nodiscard]] bool is_member(const wire::MemberStatus& member) const;
  /// Where range `range` is to be had, as far as is known.
  [[nodiscard]] std::string primary_of(std::size_t range) const;

  live::ClusterClient& client_;
  wire::JobId job_;
  std::chrono::nanoseconds patience_;
  std::set<std::string> addresses_;
  /// Of these those who did not answer, and when.
  std::map<std::string, Clock::time_point> silent_;
  Clock::time_point heard_ = Clock::now();
  /// When a node had the job, or none of its nodes answered.
  Clock::time_point had_ = Clock::now();
  bool is_dropped_ = false;
  /// Whether one of those that answered at this look has the job.
  bool is_known_ = false;
  /// The hindrance that nodes of the latest epoch tell at this look.
  core::Epoch told_epoch_ = 0;
  std::string hindrance_;
  std::string failure_;
  /// By node.
  std::map<wire::NodeId, std::string> nodes_;
  /// The latest that anyone says of each.
  std::map<wire::NodeId, core::NodeRecord> records_;
  /// Who answered at the last look.
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
  /// At the last look, while no configuration is known.
  Clock::time_point began_ = Clock::now();
};

}  // namespace starling::app
