#include "starling/engine/live/cluster_node.hpp"

#include <atomic>
#include <map>
#include <shared_mutex>

#include "starling/engine/core/door.hpp"
#include "starling/engine/core/membership.hpp"
#include "starling/engine/live/cluster_job.hpp"
#include "starling/engine/live/endings.hpp"
#include "starling/engine/live/event_loop.hpp"
#include "starling/engine/live/log_book.hpp"
#include "starling/engine/live/node_book.hpp"
#include "starling/engine/live/plans.hpp"
#include "starling/engine/live/requests.hpp"
#include "starling/engine/live/submissions.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;
using wire::JobId;
using wire::NodeId;

constexpr auto sweep_every = 250ms;
/// Who leaves, and cannot be replaced, lets what is being handed on arrive.
constexpr std::chrono::milliseconds hopeless_for = 3s;
/// Who leaves waits no longer for a job that is being laid out.
constexpr std::chrono::milliseconds busy_for = 1500ms;
/// What is not heard is said no more often.
constexpr auto refusals_apart = 30s;
/// A node that nobody takes in says so, first after 3 s.
constexpr core::Time tell_loneliness_every = 30s;
constexpr auto look_for_jobs_every = 1s;
/// A job that could not be joined is tried again after this; one that has ended is known no more.
constexpr core::Time considered_for = 10min;
/// Who was cut off when a job was closed may come back with it.
constexpr core::Time closed_for = 24h;
/// Whoever asks for rest may be gone before it says that workers are to go on.
constexpr std::chrono::milliseconds rest_max = 10s;
/// Of control messages that have come and wait for their turn, each with what it takes beside.
constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20U;
constexpr std::size_t message_overhead = 1024;

}  // namespace

/// All but what is said below runs on the loop's thread.
class ClusterNode::Running {
 public:
  explicit Running(ClusterOptions options)
      : options_(std::move(options)), id_(wire::draw_id()), random_(wire::draw_id()) {}

  ~Running() {
    end_readers();
    loop_.close();
    // Members send until they have ended; nobody hears what comes meanwhile.
    std::map<JobId, JobPtr> ending;
    {
      const std::unique_lock lock{shared_};
      ending.swap(jobs_);
    }
    ending.clear();
    endings_.reset();
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
          hear(frame, sender);
        });
    if (!endpoint) return std::move(endpoint).error();
    address_ = (*endpoint)->address();
    core::MembershipOptions membership;
    membership.self = {
        .id = id_, .address = address_, .name = options_.name, .workers = options_.workers};
    membership.doors = options_.doors;
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
      std::this_thread::sleep_for(20ms);
    loop_.post([this] { run_membership([](core::Membership& m, const auto& c) { m.leave(c); }); });
    while (EventLoop::Clock::now() < give_up && !has_left_) std::this_thread::sleep_for(10ms);
  }

 private:
  using JobPtr = std::shared_ptr<ClusterJob>;

  void log(const std::string& line) { log_book_.say(line); }

  /// Whether as many other nodes as copies are there to take over what is owned here. Where not,
  /// they have copies of all but what is being handed on just now.
  bool others_suffice() {
    const std::size_t others = live_nodes().size() - 1;
    bool suffice = true;
    for (auto& [id, job] : all_jobs()) {
      const std::size_t copies = job->plan().options().copies;
      if (others >= copies) continue;
      suffice = false;
      log("job " + std::to_string(id) + ": its ranges have " + std::to_string(copies) +
          " copies and there are " + std::to_string(others) +
          " other nodes: leaves them the copies that they have");
    }
    return suffice;
  }

  // --- what comes ---

  /// On the endpoint's thread.
  void hear(const wire::FrameView& frame, const security::Sender& sender) {
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
    if (waiting_bytes_ + bytes > waiting_bytes_max) return;  // whoever wants it says it again
    waiting_bytes_ += bytes;
    loop_.post([this, bytes, message = *std::move(decoded), key = sender.key] {
      waiting_bytes_ -= bytes;
      take(message, key);
    });
  }

  /// On the endpoint's thread. Such frames may come in floods.
  void refuse(const std::string& why) {
    if (now() < refused_at_ + refusals_apart) return;
    refused_at_ = now();
    log("does not hear all that comes: " + why);
  }

  /// On the endpoint's thread: whether the sender may be that node.
  bool is_from(NodeId node, const security::Sender& sender) {
    if (!sender.key) return true;
    bool may_be = false;
    nodes_.with(node, [&](const auto& known) { may_be = sender.may_be_at(known.address); });
    return may_be;
  }

  /// Whether it may be asked by those who hold no members of jobs.
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
      const Asker asker{message.address, request->number};
      std::visit([&](const auto& body) { answer(asker, body); }, request->body);
    } else if (const auto* reply = std::get_if<wire::Reply>(&message.body)) {
      requests_.take(*reply, key);
    }
  }

  void on_revoked(const security::Merged& merged) {
    for (const security::Revocation& revocation : merged.added)
      log("certificate " + security::print_serial(revocation.serial) + " is revoked");
    for (const auto& node : nodes_.all()) {
      const auto peer = wire::parse_peer(node.address);
      if (peer && peer->key && std::ranges::count(merged.fallen, *peer->key) > 0)
        log("node " + node.name + " at " + wire::place_of(node.address) + " is not heard any more");
    }
    if (options_.on_revoked) options_.on_revoked(merged.added);
  }

  /// Says where nobody answers at the doors that it was told.
  void tell_loneliness() {
    if (membership_->joined() || now() < lonely_told_ + tell_loneliness_every) return;
    lonely_told_ = now();
    log("no answer from " + wire::place_of(options_.doors.front()) +
        (options_.doors.size() > 1 ? " and the other doors" : "") +
        " yet: on its own; tries again and again");
  }

  // --- membership ---

  template <class Event>
  void run_membership(Event event) {
    std::vector<core::MembershipEffect> effects;
    event(*membership_, core::MembershipContext{now(), random_, effects});
    for (auto& effect : effects) std::visit([this](auto& e) { this->carry_out(e); }, effect);
  }

  void carry_out(core::MembershipSend& send) {
    say(send.address, std::move(send.message), wire::Lane::control);
  }
  void carry_out(const core::SetTimer& timer) {
    loop_.post_after(timer.at - now(), [this] {
      run_membership([](core::Membership& m, const auto& c) { m.on_timer(c); });
    });
  }
  void carry_out(const core::MemberChanged& changed) {
    const core::MemberRecord& record = changed.record;
    if (!nodes_.note(record, now())) return;
    const char* what = core::is_live(record.state)               ? " is here"
                       : record.state == core::MemberState::left ? " has left"
                                                                 : " is dead";
    log("node " + record.name + " at " + wire::place_of(record.address) + what);
    if (!core::is_live(record.state) && !nodes_.is_in_use(record.address))
      endpoint_->forget(record.address);
    if (record.state == core::MemberState::dead)
      loop_.post_after(NodeBook::believe_after, [this] { sweep_jobs(); });
    sweep_jobs();
  }
  void carry_out(const core::HasJoined&) { log("joined"); }
  void carry_out(const core::HasLeft&) { has_left_ = true; }

  [[nodiscard]] core::Time now() const { return EventLoop::Clock::now() - start_; }

  /// Live nodes, this one first.
  [[nodiscard]] std::vector<core::MemberRecord> live_nodes() const {
    std::vector<core::MemberRecord> all = nodes_.live();
    all.insert(all.begin(), membership_->self());
    return all;
  }

  // --- what goes ---

  template <class Body>
  void say(const std::string& address, Body body, wire::Lane lane) {
    endpoint_->send(address, lane,
                    wire::encode(wire::ControlMessage{id_, address_, std::move(body)}));
  }

  void reply(const Asker& asker, wire::ReplyBody body) {
    const auto lane =
        std::holds_alternative<wire::Ranges>(body) ? wire::Lane::data : wire::Lane::control;
    say(asker.address, wire::Reply{asker.number, std::move(body)}, lane);
  }

  void ask(const std::string& address, wire::RequestBody body, std::chrono::milliseconds within,
           Requests::OnReply on_reply) {
    requests_.ask(address, std::move(body), within, std::move(on_reply));
  }

  /// From members' threads.
  void carry(NodeId node, wire::Lane lane, std::span<wire::Frame> frames) {
    const std::shared_lock lock{shared_};
    if (!endpoint_) return;
    nodes_.with(node, [&](const auto& known) { endpoint_->send(known.address, lane, frames); });
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

  /// Begins a job that is prepared: anew, or one that runs elsewhere, and is of this `age`. Any
  /// that is known already is left as it is.
  Result<JobPtr> begin(JobId id, const wire::JobSettings& settings,
                       const core::ConfigurationPtr& now,
                       std::optional<std::chrono::milliseconds> age) {
    if (JobPtr known = find(id)) return known;
    const auto plan = plans_.find(id);
    if (!plan) return Error{"the job was not prepared here"};
    if (!now || (!age && now->epoch != 1) ||
        !core::is_sound(now, static_cast<core::WorkerId>(SiteOptions{}.members_max)) ||
        now->ranges.size() != plan->ranges() ||
        now->coordinator.has_value() != core::keeps_steps_centrally(plan->options().mode))
      return Error{"the job's configuration does not fit its model"};
    auto job = std::make_shared<ClusterJob>(
        id, id_, settings, plan, age.value_or(0ms),
        [this](NodeId node, wire::Lane lane, std::span<wire::Frame> frames) {
          carry(node, lane, frames);
        });
    auto begun = guarded([&] { return job->begin(now, !age); });
    if (!begun) return std::move(begun).error();
    {
      const std::unique_lock lock{shared_};
      jobs_[id] = job;
    }
    log("job " + std::to_string(id) + (age ? ": joining" : ": begins"));
    return job;
  }

  void sweep() {
    sweep_jobs();
    loop_.post_after(sweep_every, [this] { sweep(); });
  }

  void sweep_jobs() {
    for (auto& [id, job] : all_jobs()) {
      job->judge([this](NodeId node) { return nodes_.lives(node, now()); });
      const auto reports = job->site().reports();
      job->keep_time(reports);
      if (!leaving_) rejoin(*job, reports);
      if (const auto news = job->hindrance_news([this](NodeId n) { return is_heard(n); }, now()))
        log("job " + std::to_string(id) + ": " + *news);
    }
  }

  /// Whoever hears nobody suspects the others long before it calls them dead.
  [[nodiscard]] bool is_heard(NodeId node) const {
    bool is_alive = true;
    nodes_.with(node,
                [&](const auto& known) { is_alive = known.state == core::MemberState::alive; });
    return is_alive;
  }

  /// Who was declared dead wrongly begins a new life.
  void rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports) {
    std::vector<core::WorkerId> anew;
    for (const auto& report : reports)
      if (report.state == actor::MemberReport::State::excluded) anew.push_back(report.member);
    if (anew.empty()) return;
    log("job " + std::to_string(job.id()) + ": declared dead; joining again");
    job.rejoin(anew, random_);
    job.site().dismiss(anew);
  }

  /// What nobody asks about any more.
  void forget_old() {
    std::erase_if(considered_, [&](const auto& c) { return now() > c.second + considered_for; });
    std::erase_if(closed_, [&](const auto& c) { return now() > c.second + closed_for; });
    submissions_.forget_older_than(considered_for);
    nodes_.forget([this](NodeId node) { return membership_->members().find(node) != nullptr; },
                  now());
  }

  /// Asks a random node for jobs that run without this one.
  void look_for_jobs() {
    forget_old();
    tell_loneliness();
    const auto nodes = live_nodes();
    if (!leaving_ && nodes.size() > 1) {
      const auto& other = nodes[1 + random_.below(nodes.size() - 1)];
      endpoint_->compare_revocations(other.address);
      ask(other.address, wire::AskStatus{}, 2s, [this, address = other.address](auto heard) {
        if (!heard) return;
        if (const auto* status = std::get_if<wire::NodeStatus>(&*heard))
          for (const auto& job : status->jobs) consider(job, address);
      });
    }
    loop_.post_after(look_for_jobs_every, [this] { look_for_jobs(); });
  }

  void consider(const wire::JobStatus& job, const std::string& address) {
    const bool runs = std::ranges::any_of(job.here, [](const wire::MemberStatus& member) {
      return member.state == static_cast<std::uint8_t>(actor::MemberReport::State::running);
    });
    if (closed_.contains(job.job))  // it was cut off, perhaps, when the others were told
      return ask(address, wire::CloseJob{job.job}, 2s, [](const auto&) {});
    if (!runs || find(job.job) || leaving_ || plans_.is_busy()) return;
    if (!considered_.emplace(job.job, now()).second) return;
    plans_.prepare(job.job, job.settings, [this, job, address](const auto& plan) {
      auto fits = plan ? (*plan)->fits_one_of(live_nodes().size()) : Result<void>{plan.error()};
      if (leaving_ || !fits) {
        plans_.forget(job.job);
        if (!fits) log("job " + std::to_string(job.job) + ": " + fits.error().message);
        return;
      }
      ask(address, wire::AskJob{job.job}, 10s, [this, id = job.job](auto heard) {
        const auto* facts = heard ? std::get_if<wire::JobFacts>(&*heard) : nullptr;
        if (find(id)) return;
        if (facts == nullptr || leaving_) {
          considered_.erase(id);
          return plans_.forget(id);
        }
        const auto begun = begin(id, facts->settings, facts->configuration,
                                 std::chrono::milliseconds{facts->age_ms});
        if (!begun) {
          plans_.forget(id);
          return log(begun.error().message);
        }
        (*begun)->join(options_.workers, random_);
      });
    });
  }

  wire::NodeStatus make_status() {
    wire::NodeStatus status;
    status.self = membership_->self();
    status.others = nodes_.all();
    status.counts = membership_->counts();
    for (auto& [id, job] : all_jobs()) status.jobs.push_back(job->status());
    return status;
  }

  // --- requests ---

  void answer(const Asker& asker, const wire::AskStatus&) { reply(asker, make_status()); }

  void answer(const Asker& asker, const wire::PrepareJob& request) {
    if (leaving_ || closed_.contains(request.job))
      return reply(asker, wire::Refused{leaving_ ? "is leaving" : "the job is closed"});
    plans_.prepare(request.job, request.settings, [this, asker, request](auto& plan) {
      if (!plan) return reply(asker, wire::Refused{plan.error().message});
      if (auto fits = (*plan)->fits_one_of(std::max(1U, request.nodes)); !fits)
        return reply(asker, wire::Refused{fits.error().message});
      settings_[request.job] = request.settings;
      reply(asker, wire::JobPrepared{(*plan)->fingerprint(),
                                     static_cast<std::uint32_t>((*plan)->ranges())});
    });
  }

  void answer(const Asker& asker, const wire::StartJob& request) {
    considered_[request.job] = now();
    const auto begun = begin(request.job, settings_[request.job], request.first, std::nullopt);
    reply(asker, begun ? wire::ReplyBody{wire::Done{}}
                       : wire::ReplyBody{wire::Refused{begun.error().message}});
  }

  void answer(const Asker& asker, const wire::AskJob& request) {
    const JobPtr job = find(request.job);
    if (!job) return reply(asker, unknown(request.job));
    reply(asker, job->facts());
  }

  void answer(const Asker& asker, const wire::ReadRanges& request) {
    const JobPtr job = find(request.job);
    if (!job) return reply(asker, unknown(request.job));
    reply(asker, job->read(request.from, request.whole));
  }

  void answer(const Asker& asker, const wire::RestJob& request) {
    const JobPtr job = find(request.job);
    if (!job) return reply(asker, unknown(request.job));
    job->site().rest(std::min(std::chrono::milliseconds{request.milliseconds}, rest_max));
    reply(asker, wire::Done{});
  }

  void answer(const Asker& asker, const wire::StopJob& request) {
    if (const JobPtr job = find(request.job)) job->site().stop();
    reply(asker, wire::Done{});
  }

  void answer(const Asker& asker, const wire::CloseJob& request) {
    JobPtr job = find(request.job);
    // Of what it never knew it need not know that it is closed.
    if (job || plans_.knows(request.job) || considered_.contains(request.job))
      closed_[request.job] = now();
    if (job) {
      {
        const std::unique_lock lock{shared_};
        jobs_.erase(request.job);
      }
      log("job " + std::to_string(request.job) + ": closed");
      endings_->end(std::move(job));
    }
    plans_.forget(request.job);
    settings_.erase(request.job);
    reply(asker, wire::Done{});
  }

  static wire::Refused unknown(JobId id) {
    return {"job " + std::to_string(id) + ": is not known here"};
  }

  void answer(const Asker& asker, const wire::SubmitJob& request) {
    const auto nodes = live_nodes();
    if (submissions_.submit(asker, request, nodes))
      log("job " + std::to_string(request.job) + ": submitted; " + std::to_string(nodes.size()) +
          " nodes");
  }

  void answer(const Asker& asker, const wire::AskLog& request) {
    reply(asker, log_book_.read(request.from));
  }

  void answer(const Asker& asker, const wire::LeaveCluster&) {
    if (!is_asked_to_leave_.exchange(true))
      log("asked to leave by " + wire::place_of(asker.address));
    reply(asker, wire::Done{});
  }

  void answer(const Asker& asker, const wire::Farewell&) { endpoint_->forget(asker.address); }

  const ClusterOptions options_;
  const NodeId id_;
  Random random_;
  const EventLoop::Clock::time_point start_ = EventLoop::Clock::now();
  std::string address_;
  std::unique_ptr<core::Membership> membership_;
  bool leaving_ = false;
  core::Time refused_at_ = -refusals_apart;
  core::Time lonely_told_ = 3s - tell_loneliness_every;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_asked_to_leave_ = false;
  LogBook log_book_{options_.log};

  Requests requests_{loop_, wire::draw_id(),
                     [this](const std::string& address, wire::Request request) {
                       say(address, std::move(request), wire::Lane::control);
                     }};
  Plans plans_{loop_, options_.make_plan};
  std::size_t hanging_ = 0;
  Submissions submissions_{
      plans_,
      [this](const std::string& address, wire::RequestBody body, std::chrono::milliseconds within,
             Requests::OnReply on_reply) {
        ask(address, std::move(body), within, std::move(on_reply));
      },
      [this](const Asker& asker, wire::ReplyBody body) { reply(asker, std::move(body)); }};
  NodeBook nodes_;
  std::map<JobId, wire::JobSettings> settings_;
  /// Jobs that this node has been in, or has tried to join, since when.
  std::map<JobId, core::Time> considered_;
  std::map<JobId, core::Time> closed_;

  /// What other threads read: written by the loop's.
  mutable std::shared_mutex shared_;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::size_t> waiting_bytes_ = 0;
  std::map<JobId, JobPtr> jobs_;
  std::unique_ptr<security::Endpoint> endpoint_;
  std::unique_ptr<Endings> endings_ = std::make_unique<Endings>();
  EventLoop loop_;
};

Result<std::unique_ptr<ClusterNode>> ClusterNode::open(ClusterOptions options) {
  auto running = std::make_unique<Running>(std::move(options));
  if (auto opened = running->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterNode>{new ClusterNode{std::move(running)}};
}

ClusterNode::ClusterNode(std::unique_ptr<Running> running) : running_(std::move(running)) {}
ClusterNode::~ClusterNode() = default;

const std::string& ClusterNode::address() const { return running_->address(); }
NodeId ClusterNode::id() const { return running_->id(); }
wire::NodeStatus ClusterNode::status() { return running_->status(); }
bool ClusterNode::is_asked_to_leave() const { return running_->is_asked_to_leave(); }
void ClusterNode::leave(std::chrono::milliseconds within) { running_->leave(within); }
std::size_t ClusterNode::end_readers() { return running_->end_readers(); }

}  // namespace starling::live
