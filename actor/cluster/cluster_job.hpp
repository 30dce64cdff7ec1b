/// One job on one node: the members of the job that this node holds, and which nodes hold the
/// others. Internal to the cluster's node.
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
#include "starling/actor/cluster/recent_figures.hpp"
#include "starling/actor/cluster/roles.hpp"
#include "starling/actor/wire/transport.hpp"

namespace starling::actor {

/// Thread-safe.
class ClusterJob {
 public:
  /// Takes frames to a node.
  using SendFrames = std::function<void(wire::NodeId node, wire::TrafficClass traffic_class,
                                        std::span<wire::Frame> frames)>;

  /// Requires: the job was founded `age` ago.
  ClusterJob(wire::JobId id, wire::NodeId node, wire::JobSettings settings, std::string client,
             std::shared_ptr<const PreparedJob> prepared, std::chrono::milliseconds age,
             SendFrames send_frames)
      : id_(id),
        node_(node),
        settings_(std::move(settings)),
        client_(std::move(client)),
        prepared_(std::move(prepared)),
        send_frames_(std::move(send_frames)),
        founded_(Clock::now() - std::clamp(age, std::chrono::milliseconds{}, age_max)) {}

  /// Requires: called once, before anything else. `configuration` is the job's first one where the
  /// job is founded here and now (`founded`), else any later one.
  Result<void> start(const core::ConfigurationPtr& configuration, bool founded);

  /// Lets `workers` workers of this node, and the other members that it brings, ask to join.
  void join(std::size_t workers, Random& random);

  /// Lets the members of this node that were excluded ask to join again, each in its role.
  void rejoin(const std::vector<core::MemberId>& excluded, Random& random);

  /// A packet of this job has come from `node`; see LocalJob::deliver().
  void deliver(wire::NodeId node, core::Envelope envelope, bool at_once);

  /// Notifies members here of which others are dead, as far as `lives(node)` knows.
  template <class Lives>
  void judge(Lives lives) {
    const auto current = refresh();
    for (const core::Member& member : current->members) {
      const std::optional<bool> alive = lives(member.node);
      if (member.node != node_ && alive) local_->judge({member.id, member.incarnation, !*alive});
    }
  }

  /// Checks whether enough nodes are there of which `is_responsive(node)` holds; to be called
  /// several times a second. Returns the lines to log: that the job waits and for which nodes, that
  /// it goes on, or that it is given up, once it has waited for JobOptions::wait_for_nodes.
  template <class IsResponsive, class NameOf>
  [[nodiscard]] std::vector<std::string> check_blocked(
      const std::vector<actor::MemberReport>& reports, IsResponsive is_responsive, NameOf name_of) {
    const auto now = Clock::now();
    std::vector<std::string> news;
    if (given_up_ && *given_up_ < configuration()->epoch) given_up_.reset();  // others went on
    const bool is_over = !given_up_ && have_ended(reports);
    blocked_reason_ = is_over ? std::string{} : why_blocked(is_responsive, name_of);
    if (blocked_reason_.empty()) {
      unblocked_at_ = now;
      if (std::exchange(waiting_told_, false)) news.emplace_back("goes on");
      return news;
    }
    if (now < unblocked_at_ + tell_after) {
      blocked_reason_.clear();
      return news;
    }
    if (!std::exchange(waiting_told_, true)) news.push_back("waits: " + blocked_reason_);
    const auto patience = prepared_->options().wait_for_nodes;
    const core::ConfigurationPtr known = configuration();
    // Where ranges are lost, a majority ends the job itself, and notifies every node.
    const auto grace = is_majority_responsive_ ? majority_ends_within : std::chrono::seconds{};
    if (now < unblocked_at_ + patience + grace || given_up_ == known->epoch) return news;
    given_up_ = known->epoch;
    give_up_reason_ = "given up after " + std::to_string(patience / std::chrono::seconds{1}) +
                      " s (--wait-for-nodes): " + blocked_reason_;
    news.push_back(give_up_reason_);
    local_->stop();
    return news;
  }

  /// Ends the job's workers after their current step: the job is done, or a client stops it early.
  /// The first call decides which.
  void stop(bool is_done);

  /// Stops the job once its time is up, whether or not a client follows it. To be called several
  /// times a second, with the reports of the members here.
  void keep_time(const std::vector<actor::MemberReport>& reports);

  /// The latest configuration that is known here.
  core::ConfigurationPtr refresh();

  [[nodiscard]] core::ConfigurationPtr configuration() {
    const std::lock_guard lock{mutex_};
    return configuration_;
  }

  [[nodiscard]] wire::JobStatus status();

  /// The record that is kept once the job is closed. Its outcome is `summary` or, without one,
  /// follows from the state of the members here.
  [[nodiscard]] wire::JobRecord record(const std::optional<wire::JobSummary>& summary);

  /// Returns all that a node needs to join the job.
  [[nodiscard]] wire::JobDescription description();

  /// Returns ranges that members here are primary of, from number `from` on, up to about 4 MiB:
  /// where `with_state`, with the state from which a job can go on, else the values alone.
  [[nodiscard]] wire::Ranges read(core::RangeId from, bool with_state);

  [[nodiscard]] LocalJob& local() noexcept { return *local_; }
  [[nodiscard]] const PreparedJob& prepared() const noexcept { return *prepared_; }
  [[nodiscard]] const wire::JobSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] wire::JobId id() const noexcept { return id_; }
  /// The job's name, for people.
  [[nodiscard]] std::string name() const { return name_of(settings_, id_); }

 private:
  using Clock = std::chrono::steady_clock;

  /// How a job that is closed in this state has ended.
  static wire::JobSummary outcome(const wire::JobStatus& status);

  [[nodiscard]] std::chrono::milliseconds age() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - founded_);
  }

  /// Whether workers are here, and all have made their last step: they wait for nobody.
  [[nodiscard]] bool have_ended(const std::vector<actor::MemberReport>& reports);

  /// Why the job cannot change its members now, or lacks ranges; empty where neither holds.
  template <class IsResponsive, class NameOf>
  [[nodiscard]] std::string why_blocked(IsResponsive is_responsive, NameOf name_of) {
    const auto current = configuration();
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
             names_of(*current, is_responsive, name_of);
    const auto lost = std::ranges::count_if(current->ranges, [&](const core::Ownership& range) {
      return std::ranges::none_of(range.owners, member_responds, &core::RangeOwner::id);
    });
    if (lost == 0) return {};
    return std::to_string(lost) + " of the model's " + std::to_string(current->ranges.size()) +
           " ranges are on nodes that do not answer; waits for " +
           names_of(*current, is_responsive, name_of);
  }

  /// The names of the other nodes with members of the job of which `is_responsive(node)` does not
  /// hold.
  template <class IsResponsive, class NameOf>
  [[nodiscard]] std::string names_of(const core::Configuration& configuration,
                                     IsResponsive is_responsive, NameOf name_of) const {
    std::set<std::string> names;
    for (const core::Member& member : configuration.members)
      if (member.node != node_ && !is_responsive(member.node)) names.insert(name_of(member.node));
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  void join(std::vector<core::Member> roles, Random& random);
  void keep_role(const core::Member& member);
  void learn_routes(const core::Configuration& configuration);

  /// Frames of one traffic class to one node.
  struct Parcel {
    wire::NodeId node = 0;
    wire::TrafficClass traffic_class = wire::TrafficClass::control;
    std::vector<wire::Frame> frames = {};
  };

  void send(const std::vector<core::Envelope>& envelopes);
  std::optional<wire::NodeId> route_to(core::MemberId member);

  /// A job that is blocked for less than this is not reported.
  static constexpr std::chrono::milliseconds tell_after{500};
  static constexpr std::chrono::seconds majority_ends_within{5};
  /// Longer than any job has run; bounds the age that other nodes report.
  static constexpr std::chrono::milliseconds age_max{std::chrono::hours{24 * 365 * 10}};
  /// A client that follows the job stops it earlier, and knows why it ended.
  static constexpr std::chrono::seconds stop_after{2};

  const wire::JobId id_;
  const wire::NodeId node_;
  const wire::JobSettings settings_;
  /// The client that submitted it.
  const std::string client_;
  const std::shared_ptr<const PreparedJob> prepared_;
  const SendFrames send_frames_;
  const Clock::time_point founded_;
  /// Used by the loop's thread only: the steps that workers here have completed, and the job's age
  /// when one was last seen to have completed one.
  std::uint64_t steps_ = 0;
  std::chrono::milliseconds last_step_age_{};
  RecentFigures recent_;
  /// `done` or `stopped` once its workers were asked to end.
  wire::JobState state_ = wire::JobState::running;

  std::mutex mutex_;
  std::map<core::MemberId, wire::NodeId> routes_;
  /// The roles of this node's members, present and former.
  std::map<core::MemberId, core::Member> roles_;
  core::ConfigurationPtr configuration_;
  /// Used by the loop's thread only: why the job is blocked, when it last was not, and whether that
  /// was logged.
  std::string blocked_reason_;
  Clock::time_point unblocked_at_ = Clock::now();
  bool waiting_told_ = false;
  bool is_majority_responsive_ = true;
  /// The epoch in which it was given up, and why.
  std::optional<core::Epoch> given_up_;
  std::string give_up_reason_;
  /// Set once, by start(). Declared last, so that it is destroyed first: its members send, by what
  /// is above, until their actors have ended.
  std::unique_ptr<LocalJob> local_;
};

}  // namespace starling::actor
