/// The implementation of ClusterNode: its loop, and all that runs on it. Internal to the cluster's
/// node.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <shared_mutex>

#include "starling/actor/cluster/cluster_job.hpp"
#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/cluster/job_history.hpp"
#include "starling/actor/cluster/log_buffer.hpp"
#include "starling/actor/cluster/node_table.hpp"
#include "starling/actor/cluster/places.hpp"
#include "starling/actor/cluster/plans.hpp"
#include "starling/actor/cluster/reaper.hpp"
#include "starling/actor/cluster/requests.hpp"
#include "starling/actor/cluster/submissions.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::live {

/// Runs on the loop's thread, except where a comment says otherwise.
class ClusterNode::Running {
 public:
  using JobId = wire::JobId;
  using NodeId = wire::NodeId;

  explicit Running(ClusterOptions options)
      : options_(std::move(options)), id_(wire::draw_id()), random_(wire::draw_id()) {}

  ~Running() {
    end_readers();
    loop_.close();
    // Members send until they have ended; packets that come meanwhile are dropped.
    std::map<JobId, JobPtr> ending;
    {
      const std::unique_lock lock{shared_};
      ending.swap(jobs_);
    }
    ending.clear();
    reaper_.reset();
    endpoint_.reset();
  }

  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Any thread but the loop's.
  std::size_t end_readers() { return hanging_ += plans_.close(); }

  Result<void> open() {
    security::EndpointOptions network = options_.network;
    network.on_revoked = [this](const security::Merged& merged) {
      loop_.post([this, merged] { on_revoked(merged); });
    };
    auto endpoint = security::Endpoint::open(
        std::move(network), [this](const wire::FrameView& frame, const security::Sender& sender) {
          receive(frame, sender);
        });
    if (!endpoint) return std::move(endpoint).error();
    address_ = (*endpoint)->address();
    const std::string place = wire::place_of(address_);
    name_ = options_.name + (options_.names_port ? "-" + place.substr(place.rfind(':') + 1) : "");
    core::MembershipOptions membership;
    membership.self = {.id = id_, .address = address_, .name = name_, .workers = options_.workers};
    membership.seeds = options_.seeds;
    membership_ = std::make_unique<core::Membership>(std::move(membership), wire::draw_id());
    {
      const std::unique_lock lock{shared_};
      endpoint_ = *std::move(endpoint);
    }
    is_open_ = true;
    loop_.post([this] {
      run_membership([](core::Membership& m, const auto& c) { m.start(c); });
      sweep();
      look_for_jobs();
    });
    return {};
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] bool is_asked_to_leave() const { return is_asked_to_leave_; }
  [[nodiscard]] std::string refusal() const {
    const std::shared_lock lock{shared_};
    return refusal_;
  }

  /// Any thread.
  wire::NodeStatus status() {
    return loop_.call([this] { return make_status(); });
  }

  /// Any thread but the loop's.
  void leave(std::chrono::milliseconds within) {
    const auto can_hand_over = loop_.call_within(std::min(within, busy_for), [this] {
      leaving_ = true;
      for (auto& [id, job] : all_jobs()) job->site().leave();
      return others_suffice();
    });
    if (!can_hand_over) return log("lays a job out and does not come to an end: leaves at once");
    const auto give_up =
        EventLoop::Clock::now() + (*can_hand_over ? within : std::min(within, hopeless_for));
    while (EventLoop::Clock::now() < give_up && !has_handed_over())
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    loop_.post([this] { run_membership([](core::Membership& m, const auto& c) { m.leave(c); }); });
    while (EventLoop::Clock::now() < give_up && !has_left_)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }

 private:
  using JobPtr = std::shared_ptr<ClusterJob>;

  void log(const std::string& line) { log_buffer_.add(line); }
  void log_of(JobId job, const std::string& line) { log_buffer_.add(line, name_of_job(job)); }
  /// The job's name, or its number where this node does not know the job.
  [[nodiscard]] std::string name_of_job(JobId job) const;

  /// Whether there are as many other nodes as replicas to take over what is owned here. If not,
  /// they have replicas of all but what is being handed over just now.
  bool others_suffice() {
    const std::size_t others = live_nodes().size() - 1;
    bool suffice = true;
    for (auto& [id, job] : all_jobs()) {
      const std::size_t copies = job->plan().options().copies;
      if (others >= copies) continue;
      suffice = false;
      log_of(id, "its ranges have " + std::to_string(copies) + " copies and there are " +
                     std::to_string(others) +
                     " other nodes: leaves them the copies that they have");
    }
    return suffice;
  }

  // --- receiving ---

  /// On the endpoint's thread.
  void receive(const wire::FrameView& frame, const security::Sender& sender) {
    if (!is_open_) return;
    const auto kind = wire::kind_of(frame);
    if (!kind) return refuse(kind.error().message);
    if (*kind == wire::Kind::envelope) {
      if (sender.role != security::Role::node) return;
      auto decoded = wire::decode_envelope(frame);
      if (!decoded || !is_from(decoded->node, sender)) return;
      if (const JobPtr job = find(decoded->job))
        job->deliver(decoded->node, std::move(decoded->envelope), frame.at_once);
      return;
    }
    auto decoded = wire::decode_control(frame);
    if (!decoded || !sender.may_be_at(decoded->address)) return;
    if (sender.role != security::Role::node && !is_for_clients(*decoded)) return;
    const std::size_t bytes = frame.head.size() + frame.body.size() + message_overhead;
    if (waiting_bytes_ + bytes > waiting_bytes_max) return;  // the sender repeats what matters
    waiting_bytes_ += bytes;
    loop_.post([this, bytes, message = *std::move(decoded), key = sender.key] {
      waiting_bytes_ -= bytes;
      take(message, key);
    });
  }

  /// On the endpoint's thread. Logs seldom, since such frames may come in floods.
  void refuse(const std::string& why) {
    if (now() < refused_at_ + refusals_apart) return;
    refused_at_ = now();
    log("drops messages: " + why);
  }

  /// On the endpoint's thread: whether the sender may be that node.
  bool is_from(NodeId node, const security::Sender& sender) {
    if (!sender.key) return true;
    bool may_be = false;
    nodes_.with(node, [&](const auto& known) { may_be = sender.may_be_at(known.address); });
    return may_be;
  }

  /// Whether a client, which holds no members of jobs, may send it.
  static bool is_for_clients(const wire::ControlMessage& message) {
    const auto* request = std::get_if<wire::Request>(&message.body);
    return request != nullptr && !std::holds_alternative<wire::PrepareJob>(request->body) &&
           !std::holds_alternative<wire::StartJob>(request->body);
  }

  void take(const wire::ControlMessage& message, const std::optional<security::Key>& key) {
    if (key && !endpoint_->admits(*key)) return;  // it was revoked while this waited
    if (const auto* news = std::get_if<core::MembershipMessage>(&message.body)) {
      if (news->from.address != message.address) return;
      run_membership([&](core::Membership& m, const auto& c) { m.on(c, *news); });
    } else if (const auto* request = std::get_if<wire::Request>(&message.body)) {
      const Requester requester{message.address, request->number, client_of(message.address, key)};
      std::visit([&](const auto& body) { answer(requester, body); }, request->body);
    } else if (const auto* reply = std::get_if<wire::Reply>(&message.body)) {
      requests_.take(*reply, key);
    }
  }

  /// The name under which limits count a client.
  [[nodiscard]] std::string client_of(const std::string& address,
                                      const std::optional<security::Key>& key) const {
    if (key) return endpoint_->name_of(*key);
    const std::string place = wire::place_of(address);
    const auto host = place.find("//");
    return place.substr(host == std::string::npos ? 0 : host + 2,
                        place.rfind(':') - (host == std::string::npos ? 0 : host + 2));
  }

  void on_revoked(const security::Merged& merged) {
    for (const security::Revocation& revocation : merged.added)
      log("certificate " + security::print_serial(revocation.serial) + " is revoked");
    for (const auto& node : nodes_.all()) {
      const auto peer = wire::parse_peer(node.address);
      if (!peer || !peer->key || std::ranges::count(merged.revoked, *peer->key) == 0) continue;
      revoked_.insert(node.id);
      log("node " + node.name + " at " + wire::place_of(node.address) +
          " is revoked: its messages are refused now");
    }
    if (options_.on_revoked) options_.on_revoked(merged.added);
  }

  /// Logs that no seed node answers.
  void tell_loneliness() {
    if (membership_->joined() || now() < lonely_told_ + tell_loneliness_every) return;
    lonely_told_ = now();
    log("no answer from " + wire::place_of(options_.seeds.front()) +
        (options_.seeds.size() > 1 ? " and the other seed nodes" : "") +
        " yet: on its own; tries again and again");
  }

  // --- membership ---

  template <class Event>
  void run_membership(Event event) {
    std::vector<core::MembershipEffect> effects;
    event(*membership_, core::MembershipContext{now(), random_, effects});
    for (auto& effect : effects) std::visit([this](auto& e) { this->execute(e); }, effect);
  }

  void execute(core::MembershipSend& send) {
    this->send(send.address, std::move(send.message), wire::TrafficClass::control);
  }
  void execute(const core::SetTimer& timer) {
    loop_.post_after(timer.at - now(), [this] {
      run_membership([](core::Membership& m, const auto& c) { m.on_timer(c); });
    });
  }
  void execute(const core::MemberChanged& changed) {
    const core::NodeRecord& record = changed.record;
    if (!nodes_.note(record, now())) return;
    const char* what = core::is_live(record.state)             ? " is here"
                       : record.state == core::NodeState::left ? " has left"
                       : revoked_.contains(record.id)          ? " is revoked, and gone"
                                                               : " is dead";
    log("node " + record.name + " at " + wire::place_of(record.address) + what);
    if (!core::is_live(record.state) && !nodes_.is_in_use(record.address))
      endpoint_->forget(record.address);
    if (record.state == core::NodeState::dead)
      loop_.post_after(NodeTable::believe_after, [this] { sweep_jobs(); });
    sweep_jobs();
  }
  void execute(const core::HasJoined&) { log("joined"); }
  void execute(const core::HasLeft&) { has_left_ = true; }
  void execute(const core::NameRefused& refused) {
    const std::unique_lock lock{shared_};
    if (!refusal_.empty()) return;
    refusal_ = "refused: a node called " + name_ + " is there already, at " +
               wire::place_of(refused.holder.address) +
               "; each needs a name of its own, and where there are keys a key file of its own";
  }
  void execute(const core::MemberRefused& refused) {
    if (!refused_.insert(refused.record.id).second) return;
    if (refused_.size() > refused_max) refused_.erase(refused_.begin());
    log("node " + refused.record.name + " at " + wire::place_of(refused.record.address) +
        " is refused: a node of that name is there already, at " +
        wire::place_of(refused.holder.address));
  }

  [[nodiscard]] core::Time now() const { return EventLoop::Clock::now() - start_; }

  /// Live nodes, this one first.
  [[nodiscard]] std::vector<core::NodeRecord> live_nodes() const {
    std::vector<core::NodeRecord> all = nodes_.live();
    all.insert(all.begin(), membership_->self());
    return all;
  }

  // --- sending ---

  template <class Body>
  void send(const std::string& address, Body body, wire::TrafficClass traffic_class) {
    endpoint_->send(address, traffic_class,
                    wire::encode(wire::ControlMessage{id_, address_, std::move(body)}));
  }

  void reply(const Requester& requester, wire::ReplyBody body) {
    const auto traffic_class = std::holds_alternative<wire::Ranges>(body)
                                   ? wire::TrafficClass::data
                                   : wire::TrafficClass::control;
    send(requester.address, wire::Reply{requester.number, std::move(body)}, traffic_class);
  }

  void ask(const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds within,
           Requests::OnReply on_reply) {
    requests_.ask(target, std::move(body), within, std::move(on_reply));
  }

  /// From members' threads.
  void send_frames(NodeId node, wire::TrafficClass traffic_class, std::span<wire::Frame> frames) {
    const std::shared_lock lock{shared_};
    if (!endpoint_) return;
    nodes_.with(node,
                [&](const auto& known) { endpoint_->send(known.address, traffic_class, frames); });
  }

  // --- jobs ---

  /// Any thread.
  JobPtr find(JobId id) const {
    const std::shared_lock lock{shared_};
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? nullptr : job->second;
  }
  std::map<JobId, JobPtr> all_jobs() const {
    const std::shared_lock lock{shared_};
    return jobs_;
  }

  bool has_handed_over() {
    for (auto& [id, job] : all_jobs())
      for (const auto& report : job->site().reports())
        if (report.state != actor::MemberReport::State::excluded &&
            report.state != actor::MemberReport::State::failed)
          return false;
    return true;
  }

  /// Begins a prepared job: a new one or, with an `age`, one that runs elsewhere and is that old. A
  /// job that is known already is left as it is.
  Result<JobPtr> begin(JobId id, const core::ConfigurationPtr& now,
                       std::optional<std::chrono::milliseconds> age) {
    if (JobPtr known = find(id)) return known;
    const auto plan = plans_.find(id);
    const auto* place = places_.find(id);
    if (!plan || place == nullptr) return Error{"the job was not prepared here"};
    if (!now || (!age && now->epoch != 1) ||
        !core::is_sound(now, static_cast<core::MemberId>(SiteOptions{}.members_max)) ||
        now->ranges.size() != plan->ranges() ||
        now->coordinator.has_value() != core::keeps_steps_centrally(plan->options().mode))
      return Error{"the job's configuration does not fit its model"};
    auto job = std::make_shared<ClusterJob>(
        id, id_, place->settings, place->client, plan, age.value_or(std::chrono::milliseconds{}),
        [this](NodeId node, wire::TrafficClass traffic_class, std::span<wire::Frame> frames) {
          send_frames(node, traffic_class, frames);
        });
    auto begun = guarded([&] { return job->begin(now, !age); });
    if (!begun) return std::move(begun).error();
    {
      const std::unique_lock lock{shared_};
      jobs_[id] = job;
    }
    log_of(id, age ? "joining" : "begins");
    return job;
  }

  void sweep() {
    sweep_jobs();
    loop_.post_after(sweep_every, [this] { sweep(); });
  }

  /// Whether the node has left, or is dead, as far as that is believed.
  [[nodiscard]] bool is_gone(NodeId node) const { return nodes_.lives(node, now()) == false; }

  void sweep_jobs() {
    requests_.end_those_to([this](NodeId node) { return is_gone(node); });
    submissions_.look_for_losses();
    for (auto& [id, job] : all_jobs()) {
      job->judge([this](NodeId node) { return nodes_.lives(node, now()); });
      const auto reports = job->site().reports();
      job->keep_time(reports);
      if (!leaving_) rejoin(*job, reports);
      for (const std::string& news : job->look_for_hindrance(
               reports, [this](NodeId node) { return is_heard(node); },
               [this](NodeId node) { return name_of(node); }))
        log_of(id, news);
    }
  }

  /// Whether the node is alive and not suspected: a node that is partitioned off suspects the
  /// others long before it declares them dead.
  [[nodiscard]] bool is_heard(NodeId node) const {
    bool is_alive = true;
    nodes_.with(node, [&](const auto& known) { is_alive = known.state == core::NodeState::alive; });
    return is_alive;
  }

  [[nodiscard]] std::string name_of(NodeId node) const {
    std::string name = "a node that is not known here any more";
    nodes_.with(node, [&](const auto& known) { name = known.name; });
    return name;
  }

  /// Lets members that were wrongly declared dead join again, in a new incarnation.
  void rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports) {
    std::vector<core::MemberId> anew;
    for (const auto& report : reports)
      if (report.state == actor::MemberReport::State::excluded) anew.push_back(report.member);
    if (anew.empty()) return;
    log_of(job.id(), "declared dead; joining again");
    job.rejoin(anew, random_);
    job.site().dismiss(anew);
  }

  /// Forgets records that nobody asks about any more.
  void forget_old() {
    std::erase_if(considered_, [&](const auto& c) { return now() > c.second + considered_for; });
    std::erase_if(closed_, [&](const auto& c) { return now() > c.second + closed_for; });
    while (closed_.size() > closed_max)
      closed_.erase(
          std::ranges::min_element(closed_, {}, [](const auto& closed) { return closed.second; }));
    history_.forget(now());
    submissions_.forget_older_than(considered_for);
    const auto runs = [this](JobId id) { return find(id) != nullptr; };
    for (const JobId id : places_.unused(runs, now() - prepared_for)) drop_preparations(id);
    const auto is_known = [this](NodeId node) {
      return membership_->members().find(node) != nullptr;
    };
    nodes_.forget(is_known, now());
    std::erase_if(revoked_, [&](NodeId node) { return !is_known(node); });
  }

  /// Asks a random node for jobs that run without this one.
  void look_for_jobs() {
    forget_old();
    tell_loneliness();
    const auto nodes = live_nodes();
    if (!leaving_ && nodes.size() > 1) {
      const auto& other = nodes[1 + random_.below(nodes.size() - 1)];
      endpoint_->compare_revocations(other.address);
      const NodeAddress target{other.id, other.address};
      ask(target, wire::AskStatus{}, std::chrono::seconds{2}, [this, target](auto heard) {
        if (!heard) return;
        if (const auto* status = std::get_if<wire::NodeStatus>(&*heard))
          for (const auto& job : status->jobs) consider(job, target);
      });
    }
    loop_.post_after(look_for_jobs_every, [this] { look_for_jobs(); });
  }

  /// Drops the plan and the place of a job that does not begin here.
  void drop_preparations(JobId id) {
    plans_.forget(id);
    places_.give_up(id);
  }

  /// Joins a job that runs without this node.
  void consider(const wire::JobStatus& job, const NodeAddress& target);

  // --- requests about jobs (cluster_jobs.cpp) ---

  wire::NodeStatus make_status();
  /// Jobs that have a place and have not begun.
  [[nodiscard]] std::vector<wire::JobStatus> preparing() const;
  void answer(const Requester& requester, const wire::AskLog& request);
  void answer(const Requester& requester, const wire::AskJobs&);
  void answer(const Requester& requester, const wire::StopJob& request);
  void answer(const Requester& requester, const wire::CloseJob& request);
  /// Drops the job, and keeps a record of how it ended.
  void end(JobId id, const std::optional<wire::JobSummary>& summary);

  // --- requests (cluster_requests.cpp) ---

  void answer(const Requester& requester, const wire::AskStatus&);
  void answer(const Requester& requester, const wire::PrepareJob& request);
  Result<void> take_place(const wire::PrepareJob& request);
  /// Takes compute threads for the job; an Error where this node has too few.
  Result<void> fit(JobId id, const JobPlan& plan);
  void answer(const Requester& requester, const wire::StartJob& request);
  /// Ends job `former`, and gives the data read for it to `job`.
  void replace(JobId former, JobId job);
  /// Ends the job here and remembers that it is closed.
  void drop(JobId id);
  void answer(const Requester& requester, const wire::AskJob& request);
  void answer(const Requester& requester, const wire::ReadRanges& request);
  void answer(const Requester& requester, const wire::PauseJob& request);
  void answer(const Requester& requester, const wire::SubmitJob& request);
  void answer(const Requester& requester, const wire::LeaveCluster&);
  void answer(const Requester& requester, const wire::Farewell&);

  static constexpr auto sweep_every = std::chrono::milliseconds{250};
  /// The longest time that a leaving node without replacement waits for what is being handed over.
  static constexpr std::chrono::milliseconds hopeless_for = std::chrono::seconds{3};
  /// The longest time that a leaving node waits for a job that is being laid out.
  static constexpr std::chrono::milliseconds busy_for{1500};
  /// The least time between two log lines about refused frames.
  static constexpr auto refusals_apart = std::chrono::seconds{30};
  /// How often a node that no seed node answers logs it; for the first time after 3 s.
  static constexpr core::Time tell_loneliness_every = std::chrono::seconds{30};
  static constexpr auto look_for_jobs_every = std::chrono::seconds{1};
  /// A job that could not be joined is tried again after this; a concluded submission is forgotten.
  static constexpr core::Time considered_for = std::chrono::minutes{10};
  /// A prepared job that has not begun after this is dropped: the node that asked for it has died,
  /// or has left this node out.
  static constexpr core::Time prepared_for = std::chrono::minutes{10};
  /// The most nodes that are remembered as refused for another's name, each of which is logged
  /// once.
  static constexpr std::size_t refused_max = 1000;
  /// How many closed jobs are remembered: a node that was partitioned off when a job was closed may
  /// come back with it.
  static constexpr std::size_t closed_max = 65'536;
  static constexpr core::Time closed_for = std::chrono::hours{24};
  /// The most bytes of control messages that wait for their turn, each with its overhead.
  static constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20U;
  static constexpr std::size_t message_overhead = 1024;

  const ClusterOptions options_;
  const NodeId id_;
  Random random_;
  const EventLoop::Clock::time_point start_ = EventLoop::Clock::now();
  std::string address_;
  std::string name_;
  std::unique_ptr<core::Membership> membership_;
  bool leaving_ = false;
  core::Time refused_at_ = -refusals_apart;
  core::Time lonely_told_ = std::chrono::seconds{3} - tell_loneliness_every;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_asked_to_leave_ = false;
  LogBuffer log_buffer_{options_.log};

  Requests requests_{loop_, wire::draw_id(),
                     [this](const std::string& address, wire::Request request) {
                       send(address, std::move(request), wire::TrafficClass::control);
                     }};
  Plans plans_{loop_, options_.make_plan};
  std::size_t hanging_ = 0;
  Places places_{options_.limits};
  Submissions submissions_{
      plans_,
      [this](NodeId node) { return is_gone(node); },
      [this](const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds within,
             Requests::OnReply on_reply) {
        ask(target, std::move(body), within, std::move(on_reply));
      },
      [this](const Requester& requester, wire::ReplyBody body) {
        reply(requester, std::move(body));
      },
      [this](const std::string& line, const std::string& job) { log_buffer_.add(line, job); },
      [this](wire::JobRecord record) { history_.add(std::move(record), now()); }};
  NodeTable nodes_;
  /// Nodes that were refused for their names.
  std::set<NodeId> refused_;
  /// The jobs that this node has been in, or has tried to join, and when.
  std::map<JobId, core::Time> considered_;
  std::map<JobId, core::Time> closed_;
  JobHistory history_;
  /// Known nodes whose certificate was revoked.
  std::set<NodeId> revoked_;

  /// Other threads read these; the loop's thread writes them.
  mutable std::shared_mutex shared_;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::size_t> waiting_bytes_ = 0;
  std::map<JobId, JobPtr> jobs_;
  std::string refusal_;
  std::unique_ptr<security::Endpoint> endpoint_;
  std::unique_ptr<Reaper> reaper_ = std::make_unique<Reaper>();
  EventLoop loop_;
};

}  // namespace starling::live
