/// A node's part of one job: the members that run on this node, and a table of the nodes on which
/// the other members run. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/cluster/member_placement.hpp"
#include "starling/actor/cluster/recent_figures.hpp"
#include "starling/actor/wire/transport.hpp"

namespace starling::actor {

/// Call only on the loop's thread, except deliver(), configuration(), local() and the constant
/// properties, which any thread may use.
class ClusterJob {
 public:
  /// Sends frames to a node.
  using SendFrames = std::function<void(wire::NodeId node, wire::TrafficClass traffic_class,
                                        std::span<wire::Frame> frames)>;

  /// `age` is the time since the job began, which may be before this node joined it. The actors of
  /// this job call `stop_job` and `log`, which logs a line about this job, on any thread.
  ClusterJob(wire::JobId id, wire::NodeId node, wire::JobSettings settings, std::string client,
             std::shared_ptr<const PreparedJob> prepared, std::chrono::milliseconds age,
             SendFrames send_frames, std::function<void()> stop_job,
             std::function<void(const std::string&)> log)
      : id_(id),
        node_(node),
        settings_(std::move(settings)),
        client_(std::move(client)),
        prepared_(std::move(prepared)),
        send_frames_(std::move(send_frames)),
        stop_job_(std::move(stop_job)),
        log_(std::move(log)),
        began_at_(Clock::now() - std::clamp(age, std::chrono::milliseconds{}, age_max)) {}

  // Requires: bootstrap() or join() is called once, before all other functions. Both start the
  // user's own actors, and call `on_started`, as LocalJob::start_user_actors() does; if they return
  // an Error, they do not call it. They do not start the members: LocalJob::start_members() does.

  /// Makes this node's members of a new job. `configuration` is the job's first one.
  Result<void> bootstrap(const core::ConfigurationPtr& configuration,
                         LocalJob::OnStarted on_started);

  /// Makes the members that this node brings into a running job: `workers` workers and, in central
  /// and hybrid mode, an owner. They ask to join. `configuration` is the job's present one.
  Result<void> join(const core::ConfigurationPtr& configuration, std::size_t workers,
                    Random& random, LocalJob::OnStarted on_started);

  /// Starts, for each of the `excluded` members of this node, a new member with the same roles
  /// (Member::works and Member::owns) and an id that assign_member_ids() draws. The new members ask
  /// to join.
  void rejoin(const std::vector<core::MemberId>& excluded, Random& random);
  /// Called before each rejoin(), on the loop's thread. Returns false if it is too early: the
  /// second rejoin may follow the first at once, each further one only after a delay, which doubles
  /// from 1 s up to `rejoin_delay_max`. The reason: if a node cannot send to another one, the
  /// council removes its members again each time that they have joined, and the node does not know
  /// why. After two `rejoin_delay_max` without a rejoin, the delay begins anew.
  [[nodiscard]] bool begin_rejoin() {
    const auto now = Clock::now();
    if (now < rejoin_at_) return false;
    const bool is_repeated = now < rejoin_at_ + 2 * rejoin_delay_max;
    rejoin_delay_ = is_repeated
                        ? std::clamp(2 * rejoin_delay_, std::chrono::seconds{1}, rejoin_delay_max)
                        : std::chrono::seconds{};
    rejoin_at_ = now + rejoin_delay_;
    return true;
  }

  /// Delivers a packet that `node` has sent; see LocalJob::deliver().
  void deliver(wire::NodeId node, core::Envelope envelope, bool may_handle_inline);

  /// Reports to the members here which members on other nodes are alive and which are dead.
  /// `is_live(node)` returns nullopt if that is not certain; nothing is reported then.
  template <class IsLive>
  void report_liveness(IsLive is_live) {
    const auto current = refresh_configuration();
    for (const core::Member& member : current->members) {
      const std::optional<bool> live = is_live(member.node);
      if (member.node != node_ && live)
        local_->report_liveness({member.id, member.incarnation, !*live});
    }
  }

  /// Checks whether the job can go on with the nodes for which `is_responsive(node)` is true, and
  /// gives the job up once it has waited for JobOptions::wait_for_nodes, or after a second if it
  /// waits for nodes that can never answer, because `is_replaced(node)` is true. Returns the lines
  /// to log: that the job waits and for which nodes, that it goes on, or that it is given up. The
  /// caller must call this several times a second.
  template <class IsResponsive, class IsReplaced, class NameOf>
  [[nodiscard]] std::vector<std::string> check_blocked(
      const std::vector<actor::MemberReport>& reports, IsResponsive is_responsive,
      IsReplaced is_replaced, NameOf name_of) {
    const auto now = Clock::now();
    std::vector<std::string> log_lines;
    // If there is a later configuration, other nodes have gone on with the job.
    if (give_up_epoch_ && *give_up_epoch_ < configuration()->epoch) give_up_epoch_.reset();
    const bool is_over = !give_up_epoch_ && are_workers_done(reports);
    blocked_reason_ = is_over ? std::string{} : why_blocked(is_responsive, name_of);
    if (blocked_reason_.empty()) {
      unblocked_at_ = now;
      if (std::exchange(is_wait_logged_, false)) log_lines.emplace_back("goes on");
      return log_lines;
    }
    if (now < unblocked_at_ + log_blocked_after) {
      blocked_reason_.clear();
      return log_lines;
    }
    if (!std::exchange(is_wait_logged_, true)) log_lines.push_back("waits: " + blocked_reason_);
    if (const std::string lost = why_hopeless(is_replaced, name_of);
        !lost.empty() && now > unblocked_at_ + hopeless_grace) {
      if (give_up_epoch_ == configuration()->epoch) return log_lines;
      give_up("given up: " + lost);
      log_lines.push_back(give_up_reason_);
      return log_lines;
    }
    const auto wait_max = prepared_->options().wait_for_nodes;
    const core::ConfigurationPtr known = configuration();
    // If only ranges are lost, the council ends the job itself, and notifies every node.
    const auto grace = is_majority_responsive_ ? lost_ranges_grace : std::chrono::seconds{};
    if (now < unblocked_at_ + wait_max + grace || give_up_epoch_ == known->epoch) return log_lines;
    give_up("given up after " + std::to_string(wait_max / std::chrono::seconds{1}) +
            " s (--wait-for-nodes): " + blocked_reason_);
    log_lines.push_back(give_up_reason_);
    return log_lines;
  }

  /// Stops the workers here at the end of their step, either because the job has reached its goal
  /// (`is_done`) or before that. The first call decides which of the two is recorded.
  void stop(bool is_done);

  /// Updates the job's progress, and stops the workers here if the job's time limit has passed,
  /// even if no client follows the job. The caller must call this several times a second, with the
  /// reports of the members here.
  void update_progress(const std::vector<actor::MemberReport>& reports);

  /// Returns why members here have failed; leaves out the reasons that an earlier call returned.
  [[nodiscard]] std::vector<std::string> new_failures(
      const std::vector<actor::MemberReport>& reports);

  /// Returns how the job has ended, as a line for the log; nullopt if the latest call that returned
  /// a line returned the same one.
  [[nodiscard]] std::optional<std::string> new_end_line(const wire::JobSummary& summary);
  /// Returns such a line for a map-reduce job (a flow) once all members here have ended; nullopt
  /// before, and for other jobs.
  [[nodiscard]] std::optional<std::string> new_end_line_of_flow(
      const std::vector<actor::MemberReport>& reports);

  /// Takes over, from the status of another node, how many updates each worker has made, so that
  /// every node knows these numbers even after a worker's node is gone. If all members here are
  /// still joining and the other node has given the job up, gives the job up here too.
  void merge_status(const wire::JobStatus& remote);

  /// Returns the latest configuration that the members here know.
  core::ConfigurationPtr refresh_configuration();

  [[nodiscard]] core::ConfigurationPtr configuration() {
    const std::lock_guard lock{mutex_};
    return configuration_;
  }

  [[nodiscard]] wire::JobStatus status();

  /// Returns the record that is kept of the job after it is closed. Its outcome is `summary` or, if
  /// `summary` is nullopt, follows from the state of the members here.
  [[nodiscard]] wire::JobRecord record(const std::optional<wire::JobSummary>& summary);

  /// Returns everything that a node needs to join the job.
  [[nodiscard]] wire::JobDescription description();

  /// Reads the ranges whose primary is a member here, beginning with range `from`, until the reply
  /// has 4 MiB; Ranges::next is the `from` of the next call, or 0 if no range is left. The reply
  /// holds the values and, if `with_slots_and_ledger`, the optimizer's slots and the ledgers, from
  /// which a job can resume. Calls `on_read` with the reply on one of the job's threads.
  void read_ranges(core::RangeId from, bool with_slots_and_ledger,
                   std::function<void(wire::Ranges)> on_read);

  /// Returns the recorded intervals of the workers here, from interval number `from` on; their
  /// times are in ns since the job started on this node.
  [[nodiscard]] wire::TraceIntervals trace(std::uint64_t from);

  [[nodiscard]] LocalJob& local() noexcept { return *local_; }
  [[nodiscard]] const PreparedJob& prepared() const noexcept { return *prepared_; }
  [[nodiscard]] const wire::JobSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] wire::JobId id() const noexcept { return id_; }
  /// The job's name or, if it has none, its id in digits.
  [[nodiscard]] std::string name() const { return name_of(settings_, id_); }

 private:
  using Clock = std::chrono::steady_clock;

  /// Returns the outcome of a job that is closed in this state.
  static wire::JobSummary outcome_of(const wire::JobStatus& status);

  [[nodiscard]] std::chrono::milliseconds age() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_at_);
  }

  /// True if this node has workers and all have made their last step, so that they wait for no
  /// other node.
  [[nodiscard]] bool are_workers_done(const std::vector<actor::MemberReport>& reports);

  /// Returns why the job cannot go on: no majority of the council responds, or no owner of some
  /// range. Returns "" if the job can go on. Sets `is_majority_responsive_`.
  template <class IsResponsive, class NameOf>
  [[nodiscard]] std::string why_blocked(IsResponsive is_responsive, NameOf name_of) {
    const auto current = configuration();
    if (current->has_lost_range()) return {};  // the council has ended the job
    const auto member_responds = [&](core::MemberId id) {
      const core::Member* member = current->find(id);
      return member != nullptr && (member->node == node_ || is_responsive(member->node));
    };
    std::vector<core::MemberId> voters;
    std::ranges::copy_if(current->council, std::back_inserter(voters), member_responds);
    is_majority_responsive_ = core::is_quorum(current->council, voters);
    if (!is_majority_responsive_)
      return "no majority: of the " + std::to_string(current->council.size()) +
             " members that decide only " + std::to_string(voters.size()) +
             (voters.size() == 1 ? " answers" : " answer") + "; waits for " +
             unresponsive_nodes(*current, is_responsive, name_of);
    const auto lost = std::ranges::count_if(current->ranges, [&](const core::Ownership& range) {
      return std::ranges::none_of(range.owners, member_responds, &core::RangeOwner::id);
    });
    if (lost == 0) return {};
    return std::to_string(lost) + " of the model's " + std::to_string(current->ranges.size()) +
           " ranges are on nodes that do not answer; waits for " +
           unresponsive_nodes(*current, is_responsive, name_of);
  }

  /// Returns why the job can never go on: `is_replaced(node)` is true of so many nodes that the
  /// rest of the council is no majority, or that a range has no owner. A node that was started anew
  /// has lost its votes and its ranges. Returns "" if the job may still go on.
  template <class IsReplaced, class NameOf>
  [[nodiscard]] std::string why_hopeless(IsReplaced is_replaced, NameOf name_of) {
    const auto current = configuration();
    std::set<std::string> names;
    std::set<core::MemberId> remaining;
    for (const core::Member& member : current->members)
      if (member.node != node_ && is_replaced(member.node))
        names.insert(name_of(member.node));
      else
        remaining.insert(member.id);
    const auto remains = [&](core::MemberId id) { return remaining.contains(id); };
    std::vector<core::MemberId> voters;
    std::ranges::copy_if(current->council, std::back_inserter(voters), remains);
    const bool has_majority = core::is_quorum(current->council, voters);
    const bool has_ranges = std::ranges::all_of(current->ranges, [&](const auto& range) {
      return range.owners.empty() ||
             std::ranges::any_of(range.owners, remains, &core::RangeOwner::id);
    });
    if (names.empty() || (has_majority && has_ranges)) return {};
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return (names.size() == 1 ? "node " + all + " was started anew and has lost its part"
                              : "nodes " + all + " were started anew and have lost their parts") +
           " of the job, so " +
           (has_majority ? "ranges of the model are lost"
                         : "no majority of the members that decide is left") +
           "; valid: a new job, or one that resumes from a checkpoint";
  }

  void adopt_if_later(core::ConfigurationPtr other) {
    const std::lock_guard lock{mutex_};
    if (other->epoch <= configuration_->epoch) return;
    configuration_ = std::move(other);
    for (const core::Member& member : configuration_->members) routes_[member.id] = member.node;
  }
  /// Gives the job up in the current configuration.
  void give_up(std::string reason);

  /// Lists the names of the other nodes that have members and for which `is_responsive(node)` is
  /// false.
  template <class IsResponsive, class NameOf>
  [[nodiscard]] std::string unresponsive_nodes(const core::Configuration& configuration,
                                               IsResponsive is_responsive, NameOf name_of) const {
    std::set<std::string> names;
    for (const core::Member& member : configuration.members)
      if (member.node != node_ && !is_responsive(member.node)) names.insert(name_of(member.node));
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  /// Records how far a worker has got according to its own report. Ignores step 0: the worker does
  /// not know yet at which step it begins.
  void record_report(const core::MemberIncarnation& worker, core::Step step, std::uint64_t updates);
  /// Records how far a departed worker has got, by those of its updates that the model holds.
  void record_departed(const core::WorkerProgress& departed);

  Result<void> make_local_job(const core::ConfigurationPtr& configuration);
  void add_joiners(std::vector<core::Member> members, Random& random);
  void remember_own_member(const core::Member& member);
  void set_routes(const core::Configuration& configuration);

  /// How many updates one incarnation of a worker has made.
  struct WorkerCount {
    /// The step at which the incarnation began; nullopt until this node knows it.
    std::optional<core::Step> first_step = std::nullopt;
    std::uint64_t updates = 0;
  };
  /// When joiner_routes_ has this many entries, it is cleared.
  static constexpr std::size_t joiner_routes_max = 4096;
  /// While workers_ has this many workers, reports of other nodes add no further ones.
  static constexpr std::size_t workers_known_max = 65'536;

  /// Frames of one traffic class for one node.
  struct FrameBatch {
    wire::NodeId node = 0;
    wire::TrafficClass traffic_class = wire::TrafficClass::control;
    std::vector<wire::Frame> frames = {};
  };

  void send(const std::vector<core::Envelope>& envelopes);
  /// Returns the node of `member` or, if `incarnation` is that of a joining member with this id,
  /// the node of the joining member; nullopt if the node is not known.
  std::optional<wire::NodeId> route_to(core::MemberId member,
                                       std::optional<core::Incarnation> incarnation);

  /// A job that has been blocked for a shorter time is not reported as blocked.
  static constexpr std::chrono::milliseconds log_blocked_after{500};
  /// A job that can never go on is given up after it has been blocked for this time: the news that
  /// other nodes have gone on may still come.
  static constexpr std::chrono::seconds hopeless_grace{1};
  /// If only ranges are lost, how much longer than JobOptions::wait_for_nodes this node waits
  /// before it gives the job up, so that the council ends the job first.
  static constexpr std::chrono::seconds lost_ranges_grace{5};
  /// The longest age accepted from other nodes; no job runs that long.
  static constexpr std::chrono::milliseconds age_max{std::chrono::hours{24 * 365 * 10}};
  /// How long after its time limit a job is stopped here. A client that follows the job stops it
  /// earlier, and records why it ended.
  static constexpr std::chrono::seconds stop_grace{2};
  /// The longest time between two rejoins.
  static constexpr std::chrono::seconds rejoin_delay_max{60};

  const wire::JobId id_;
  const wire::NodeId node_;
  const wire::JobSettings settings_;
  /// The client that submitted the job.
  const std::string client_;
  const std::shared_ptr<const PreparedJob> prepared_;
  const SendFrames send_frames_;
  /// Stops the job on all its nodes. Thread-safe.
  const std::function<void()> stop_job_;
  const std::function<void(const std::string&)> log_;
  const Clock::time_point began_at_;
  /// Used only on the loop's thread: the number of updates that workers here have made, and the
  /// age of the job when that number last grew.
  std::uint64_t updates_ = 0;
  std::chrono::milliseconds job_age_at_last_step_{};
  RecentFigures recent_;
  /// Used only on the loop's thread: the reasons that new_failures() has returned.
  std::set<std::string> failures_;
  /// Used only on the loop's thread; see begin_rejoin().
  Clock::time_point rejoin_at_ = Clock::now() - 2 * rejoin_delay_max;
  std::chrono::seconds rejoin_delay_{};
  /// Used only on the loop's thread: the last line of new_end_line().
  std::string last_end_line_;
  /// Used only on the loop's thread: the workers of all nodes, present and gone, as far as this
  /// node knows.
  std::map<core::MemberIncarnation, WorkerCount> workers_;
  /// `done` or `stopped` from the first call of stop() on.
  wire::JobState state_ = wire::JobState::running;

  /// Guards routes_, joiner_routes_, own_members_, configuration_ and the pointer local_.
  std::mutex mutex_;
  /// The node of each member.
  std::map<core::MemberId, wire::NodeId> routes_;
  /// The node of each sender that was no member when its last packet came, such as a joining one.
  std::map<core::MemberIncarnation, wire::NodeId> joiner_routes_;
  /// This node's members, present and former.
  std::map<core::MemberId, core::Member> own_members_;
  core::ConfigurationPtr configuration_;
  /// Used only on the loop's thread: why the job is blocked (empty if it is not), when it was last
  /// not blocked, and whether a line was logged that it waits.
  std::string blocked_reason_;
  Clock::time_point unblocked_at_ = Clock::now();
  bool is_wait_logged_ = false;
  /// Set by why_blocked().
  bool is_majority_responsive_ = true;
  /// The configuration epoch in which this node gave the job up, and why.
  std::optional<core::Epoch> give_up_epoch_;
  std::string give_up_reason_;
  /// Set once, by bootstrap() or join(). Declared last so that it is destroyed first: its members
  /// call send(), which uses the fields above, until their actors have ended.
  std::unique_ptr<LocalJob> local_;
};

}  // namespace starling::actor
