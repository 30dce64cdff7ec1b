/// One job on one node: its site, and where its other members are. Internal to the cluster's node.
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
#include "starling/base/utc.hpp"

namespace starling::live {

/// Thread-safe.
class ClusterJob {
 public:
  /// Takes frames to a node.
  using SendFrames = std::function<void(wire::NodeId node, wire::TrafficClass traffic_class,
                                        std::span<wire::Frame> frames)>;

  /// Requires: the job was founded `age` ago.
  ClusterJob(wire::JobId id, wire::NodeId node, wire::JobSettings settings, std::string client,
             std::shared_ptr<const JobPlan> plan, std::chrono::milliseconds age,
             SendFrames send_frames)
      : id_(id),
        node_(node),
        settings_(std::move(settings)),
        client_(std::move(client)),
        plan_(std::move(plan)),
        send_frames_(std::move(send_frames)),
        founded_(Clock::now() - std::clamp(age, std::chrono::milliseconds{}, age_max)) {}

  /// Requires: called once, before anything else. `now` is the job's first configuration where the
  /// job is `founded`, else any one of it.
  Result<void> begin(const core::ConfigurationPtr& now, bool founded) {
    learn_routes(*now);
    SiteOptions options;
    options.send = [this](const std::vector<core::Envelope>& envelopes) { send(envelopes); };
    auto site = plan_->make_site(std::move(options));
    if (!site) return std::move(site).error();
    {
      const std::lock_guard lock{mutex_};
      site_ = *std::move(site);
      configuration_ = now;
    }
    if (!founded) return {};
    std::vector<core::Member> here;
    for (const core::Member& member : now->members)
      if (member.node == node_) here.push_back(member);
    for (const core::Member& member : here) keep_role(member);
    site_->found(here, now);
    return {};
  }

  /// Lets `workers` workers of this node, and the other members that it brings, ask to join.
  void join(std::size_t workers, Random& random) {
    join(roles_of_newcomer(plan_->options().mode, node_, workers), random);
  }

  /// Lets the members of this node that were excluded ask to join again, each in its role.
  void rejoin(const std::vector<core::MemberId>& excluded, Random& random) {
    std::vector<core::Member> roles;
    {
      const std::lock_guard lock{mutex_};
      for (const core::MemberId id : excluded)
        if (const auto role = roles_.find(id); role != roles_.end()) roles.push_back(role->second);
    }
    join(std::move(roles), random);
  }

  /// A packet of this job has come from `node`; see LocalJob::deliver().
  void deliver(wire::NodeId node, core::Envelope envelope, bool at_once) {
    if (envelope.from >= SiteOptions{}.members_max) return;
    LocalJob* site = nullptr;
    {
      const std::lock_guard lock{mutex_};
      // The node of a joining member is learnt from its packets. Where two members have one id, the
      // one in the configuration counts, and no other node may send for it.
      const core::Member* sender = configuration_ ? configuration_->find(envelope.from) : nullptr;
      if (sender == nullptr)
        routes_[envelope.from] = node;
      else if (sender->incarnation == envelope.packet.from && sender->node != node)
        return;
      site = site_.get();
    }
    if (site != nullptr) site->deliver(std::move(envelope), at_once);
  }

  /// Notifies members here of which others are dead, as far as `lives(node)` knows.
  template <class Lives>
  void judge(Lives lives) {
    const auto now = refresh();
    for (const core::Member& member : now->members) {
      const std::optional<bool> alive = lives(member.node);
      if (member.node != node_ && alive) site_->judge({member.id, member.incarnation, !*alive});
    }
  }

  /// Checks whether enough nodes are there of which `is_heard(node)` holds; to be called several
  /// times a second. Returns the lines to log: that the job waits and for which nodes, that it goes
  /// on, or that it is given up, once it has waited for JobOptions::wait_for_nodes.
  template <class IsHeard, class NameOf>
  [[nodiscard]] std::vector<std::string> look_for_hindrance(
      const std::vector<actor::MemberReport>& reports, IsHeard is_heard, NameOf name_of) {
    const auto now = Clock::now();
    std::vector<std::string> news;
    if (given_up_ && *given_up_ < configuration()->epoch) given_up_.reset();  // others went on
    const bool is_over = !given_up_ && have_ended(reports);
    hindrance_ = is_over ? std::string{} : hindrance(is_heard, name_of);
    if (hindrance_.empty()) {
      free_at_ = now;
      if (std::exchange(waiting_told_, false)) news.emplace_back("goes on");
      return news;
    }
    if (now < free_at_ + tell_after) {
      hindrance_.clear();
      return news;
    }
    if (!std::exchange(waiting_told_, true)) news.push_back("waits: " + hindrance_);
    const auto patience = plan_->options().wait_for_nodes;
    const core::ConfigurationPtr known = configuration();
    // Where ranges are lost, a majority ends the job itself, and notifies every node.
    const auto grace = is_majority_heard_ ? majority_ends_within : std::chrono::seconds{};
    if (now < free_at_ + patience + grace || given_up_ == known->epoch) return news;
    given_up_ = known->epoch;
    failure_ = "given up after " + std::to_string(patience / std::chrono::seconds{1}) +
               " s (--wait-for-nodes): " + hindrance_;
    news.push_back(failure_);
    site_->stop();
    return news;
  }

  /// Ends the job's workers after their current step: the job is done, or a client stops it early.
  /// The first call decides which.
  void stop(bool is_done) {
    if (state_ == wire::JobState::running)
      state_ = is_done ? wire::JobState::done : wire::JobState::stopped;
    site_->stop();
  }

  /// Stops the job once its time is up, whether or not a client follows it. To be called several
  /// times a second, with the reports of the members here.
  void keep_time(const std::vector<actor::MemberReport>& reports) {
    const auto limit = plan_->options().time;
    if (limit && age() > *limit + stop_after) stop(true);
    std::uint64_t steps = 0;
    double loss_sum = 0;
    for (const auto& report : reports) {
      steps += report.worker.losses;
      loss_sum += report.worker.loss_sum;
    }
    recent_.note(Clock::now() - founded_, steps, loss_sum);
    if (std::exchange(steps_, steps) < steps) worked_ = age();
  }

  /// The latest configuration that is known here.
  core::ConfigurationPtr refresh() {
    auto latest = site_->configuration();
    const std::lock_guard lock{mutex_};
    if (latest && latest->epoch > configuration_->epoch) {
      configuration_ = std::move(latest);
      for (const core::Member& member : configuration_->members) routes_[member.id] = member.node;
    }
    return configuration_;
  }

  [[nodiscard]] core::ConfigurationPtr configuration() {
    const std::lock_guard lock{mutex_};
    return configuration_;
  }

  [[nodiscard]] wire::JobStatus status() {
    wire::JobStatus status{
        id_,     settings_, {}, refresh(), static_cast<std::uint64_t>(worked_.count()),
        client_, hindrance_};
    // In a later epoch the others have gone on, and may take this node's members in again.
    if (given_up_ == status.configuration->epoch) status.failure = failure_;
    for (const auto& report : site_->reports())
      status.here.push_back(
          {report.member, report.incarnation, static_cast<std::uint8_t>(report.state), report.why,
           report.worker.step, report.worker.samples, report.worker.waited.count(),
           report.worker.loss_sum, report.worker.losses, report.worker.draws, report.worker.passes,
           report.worker.drawn, report.is_paused, report.held});
    const JobOptions& options = plan_->options();
    status.state = state_;
    status.since_ms = utc_now_us() / 1000 - age().count();
    status.steps_total = options.steps == barrier::finished ? 0 : options.steps;
    status.steps_in_epoch = plan_->steps_per_epoch();
    if (options.time)
      status.time_max_ms = static_cast<std::uint64_t>(*options.time / std::chrono::milliseconds{1});
    status.updates_per_s = recent_.updates_per_s();
    status.loss = recent_.loss();
    status.losses = recent_.losses();
    return status;
  }

  /// The record that is kept once the job is closed. Its outcome is `summary` or, without one,
  /// follows from the state of the members here.
  [[nodiscard]] wire::JobRecord record(const std::optional<wire::JobSummary>& summary) {
    const wire::JobStatus now = status();
    wire::JobRecord record;
    record.job = id_;
    record.name = name();
    record.what = summary_of(settings_);
    record.client = client_;
    record.began_ms = now.since_ms;
    record.ended_ms = utc_now_us() / 1000;
    record.steps_total = now.steps_total;
    for (const wire::MemberStatus& member : now.here) {
      record.updates += std::min<std::uint64_t>(member.step, member.losses);
      record.step_max = std::max(record.step_max, member.step);
    }
    record.is_told = summary.has_value();
    record.summary = summary ? *summary : outcome(now);
    return record;
  }

  /// Returns all that a node needs to join the job.
  [[nodiscard]] wire::JobFacts facts() {
    return {settings_, static_cast<std::uint32_t>(plan_->options().workers), refresh(),
            static_cast<std::uint64_t>(age().count()), client_};
  }

  /// Returns ranges that members here are primary of, from number `from` on, up to about 4 MiB:
  /// where `whole`, with the state from which a job can go on, else the values alone.
  [[nodiscard]] wire::Ranges read(core::RangeId from, bool whole) {
    constexpr std::size_t bytes_max = std::size_t{4} << 20U;
    wire::Ranges reply;
    std::size_t bytes = 0;
    auto all = site_->ranges({from, bytes_max});
    std::ranges::sort(all, {}, &core::RangeState::range);
    for (auto& state : all) {
      if (!whole) {
        state.slots = {};
        state.ledger.clear();
      }
      state.gathered.clear();  // what waits for a round is made again
      bytes += state.value.bytes().size() + state.slots.bytes().size();
      reply.states.push_back(std::move(state));
      if (bytes < bytes_max) continue;
      reply.next = reply.states.back().range + 1;
      break;
    }
    return reply;
  }

  [[nodiscard]] LocalJob& site() noexcept { return *site_; }
  [[nodiscard]] const JobPlan& plan() const noexcept { return *plan_; }
  [[nodiscard]] const wire::JobSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] wire::JobId id() const noexcept { return id_; }
  /// The job's name, for people.
  [[nodiscard]] std::string name() const { return name_of(settings_, id_); }

 private:
  using Clock = std::chrono::steady_clock;

  /// How a job that is closed in this state has ended.
  static wire::JobSummary outcome(const wire::JobStatus& now) {
    using State = actor::MemberReport::State;
    if (!now.failure.empty()) return {wire::JobState::failed, now.failure};
    bool all_done = true;
    for (const wire::MemberStatus& member : now.here) {
      if (member.state == static_cast<std::uint8_t>(State::failed))
        return {wire::JobState::failed, member.why};
      all_done = all_done && member.state == static_cast<std::uint8_t>(State::done);
    }
    if (now.state != wire::JobState::running) return {now.state};
    if (all_done) return {wire::JobState::done};
    return {wire::JobState::stopped, "dropped before its end"};
  }

  [[nodiscard]] std::chrono::milliseconds age() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - founded_);
  }

  /// Whether workers are here, and all have made their last step: they wait for nobody.
  [[nodiscard]] bool have_ended(const std::vector<actor::MemberReport>& reports) {
    const std::lock_guard lock{mutex_};
    bool works = false;
    for (const auto& report : reports) {
      const auto role = roles_.find(report.member);
      if (role == roles_.end() || !role->second.works) continue;
      works = true;
      if (report.state != actor::MemberReport::State::done) return false;
    }
    return works;
  }

  /// Why the job cannot change its members now, or lacks ranges; empty where neither holds.
  template <class IsHeard, class NameOf>
  [[nodiscard]] std::string hindrance(IsHeard is_heard, NameOf name_of) {
    const auto now = configuration();
    const auto heard = [&](core::MemberId id) {
      const core::Member* member = now->find(id);
      return member != nullptr && (member->node == node_ || is_heard(member->node));
    };
    std::vector<core::MemberId> voters;
    std::ranges::copy_if(now->council, std::back_inserter(voters), heard);
    is_majority_heard_ = core::is_quorum(now->council, voters);
    if (!is_majority_heard_)
      return "no majority: of the " + std::to_string(now->council.size()) +
             " members that decide only " + std::to_string(voters.size()) +
             (voters.size() == 1 ? " answers" : " answer") + "; waits for " +
             names_of(*now, is_heard, name_of);
    const auto lost = std::ranges::count_if(now->ranges, [&](const core::Ownership& range) {
      return std::ranges::none_of(range.owners, heard, &core::RangeOwner::id);
    });
    if (lost == 0) return {};
    return std::to_string(lost) + " of the model's " + std::to_string(now->ranges.size()) +
           " ranges are on nodes that do not answer; waits for " +
           names_of(*now, is_heard, name_of);
  }

  /// The names of the other nodes with members of the job of which `is_heard(node)` does not hold.
  template <class IsHeard, class NameOf>
  [[nodiscard]] std::string names_of(const core::Configuration& now, IsHeard is_heard,
                                     NameOf name_of) const {
    std::set<std::string> names;
    for (const core::Member& member : now.members)
      if (member.node != node_ && !is_heard(member.node)) names.insert(name_of(member.node));
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  void join(std::vector<core::Member> roles, Random& random) {
    const auto now = configuration();
    std::vector<core::MemberId> seeds;
    for (const core::Member& other : now->members)
      if (other.node != node_) seeds.push_back(other.id);
    const auto members_max = static_cast<core::MemberId>(SiteOptions{}.members_max);
    for (const core::Member& member : newcomers(std::move(roles), *now, members_max, random)) {
      keep_role(member);
      site_->join(member, seeds);
    }
  }

  void keep_role(const core::Member& member) {
    const std::lock_guard lock{mutex_};
    roles_[member.id] = member;
  }

  void learn_routes(const core::Configuration& now) {
    const std::lock_guard lock{mutex_};
    for (const core::Member& member : now.members) routes_[member.id] = member.node;
  }

  /// Frames of one traffic class to one node.
  struct Parcel {
    wire::NodeId node = 0;
    wire::TrafficClass traffic_class = wire::TrafficClass::control;
    std::vector<wire::Frame> frames = {};
  };

  void send(const std::vector<core::Envelope>& envelopes) {
    std::vector<Parcel> parcels;
    for (const core::Envelope& envelope : envelopes) {
      const auto node = route_to(envelope.to);
      if (!node) continue;
      wire::Frame frame = wire::encode(id_, node_, envelope);
      const auto traffic_class = wire::traffic_class_of(frame);
      auto parcel = std::ranges::find_if(parcels, [&](const Parcel& p) {
        return p.node == *node && p.traffic_class == traffic_class;
      });
      if (parcel == parcels.end()) parcel = parcels.insert(parcel, Parcel{*node, traffic_class});
      parcel->frames.push_back(std::move(frame));
    }
    for (Parcel& parcel : parcels) send_frames_(parcel.node, parcel.traffic_class, parcel.frames);
  }

  std::optional<wire::NodeId> route_to(core::MemberId member) {
    const std::lock_guard lock{mutex_};
    const auto route = routes_.find(member);
    if (route == routes_.end()) return std::nullopt;
    return route->second;
  }

  /// A hindrance that lasts less than this is not reported.
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
  const std::shared_ptr<const JobPlan> plan_;
  const SendFrames send_frames_;
  const Clock::time_point founded_;
  /// Used by the loop's thread only: the steps that workers here have made, and the job's age when
  /// they were last seen to have made one.
  std::uint64_t steps_ = 0;
  std::chrono::milliseconds worked_{};
  RecentFigures recent_;
  /// `done` or `stopped` once its workers were asked to end.
  wire::JobState state_ = wire::JobState::running;

  std::mutex mutex_;
  std::map<core::MemberId, wire::NodeId> routes_;
  /// The roles of this node's members, present and former.
  std::map<core::MemberId, core::Member> roles_;
  core::ConfigurationPtr configuration_;
  /// Used by the loop's thread only: what hinders the job, when nothing did last, and whether that
  /// was logged.
  std::string hindrance_;
  Clock::time_point free_at_ = Clock::now();
  bool waiting_told_ = false;
  bool is_majority_heard_ = true;
  /// The epoch in which it was given up, and why.
  std::optional<core::Epoch> given_up_;
  std::string failure_;
  /// Set once, by begin(). Last: its members send until they have ended.
  std::unique_ptr<LocalJob> site_;
};

}  // namespace starling::live
