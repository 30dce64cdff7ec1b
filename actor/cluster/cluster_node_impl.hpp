/// The implementation of ClusterNode: its event loop, and all that runs on it. Internal to the
/// cluster's node.
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
#include "starling/actor/cluster/job_slots.hpp"
#include "starling/actor/cluster/log_buffer.hpp"
#include "starling/actor/cluster/node_table.hpp"
#include "starling/actor/cluster/prepared_jobs.hpp"
#include "starling/actor/cluster/reaper.hpp"
#include "starling/actor/cluster/requests.hpp"
#include "starling/actor/cluster/submissions.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// Runs on the loop's thread, except where a comment says otherwise.
class ClusterNode::Impl {
 public:
  using JobId = wire::JobId;
  using NodeId = wire::NodeId;

  explicit Impl(ClusterOptions options)
      : options_(std::move(options)), id_(wire::draw_id()), random_(wire::draw_id()) {}

  ~Impl();

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Any thread but the loop's.
  std::size_t end_readers() { return hanging_ += prepared_.close(); }

  Result<void> open();

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] bool is_asked_to_leave() const { return is_asked_to_leave_; }
  [[nodiscard]] std::string refusal() const {
    const std::shared_lock lock{jobs_mutex_};
    return refusal_;
  }

  /// Any thread.
  wire::NodeStatus status() {
    return loop_.call([this] { return make_status(); });
  }

  /// Any thread but the loop's.
  void leave(std::chrono::milliseconds timeout);

 private:
  using JobPtr = std::shared_ptr<ClusterJob>;

  void log(const std::string& line) { log_buffer_.add(line); }
  void log_for_job(JobId job, const std::string& line) { log_buffer_.add(line, name_of_job(job)); }
  /// The job's name, or its number where this node does not know the job.
  [[nodiscard]] std::string name_of_job(JobId job) const;

  /// Whether there are as many other nodes as replicas to take over what is owned here. If not,
  /// they have replicas of all but what is being handed over just now.
  bool others_suffice();
  bool has_handed_over();

  // --- receiving (cluster_messages.cpp) ---

  /// On the endpoint's thread.
  void receive(const wire::FrameView& frame, const security::Sender& sender);
  /// On the endpoint's thread. Logs seldom, since such frames may come in floods.
  void refuse(const std::string& why);
  /// On the endpoint's thread: whether the sender may be that node.
  bool is_from(NodeId node, const security::Sender& sender);
  /// Whether a client, which holds no members of jobs, may send it.
  static bool is_for_clients(const wire::ControlMessage& message);
  void take(const wire::ControlMessage& message, const std::optional<security::Key>& key);
  /// The name under which limits count a client.
  [[nodiscard]] std::string client_of(const std::string& address,
                                      const std::optional<security::Key>& key) const;

  // --- membership (cluster_membership.cpp) ---

  template <class Event>
  void run_membership(Event event) {
    std::vector<core::MembershipEffect> effects;
    event(*membership_, core::MembershipContext{now(), random_, effects});
    for (auto& effect : effects) std::visit([this](auto& e) { this->execute(e); }, effect);
  }

  void execute(core::MembershipSend& send);
  void execute(const core::SetTimer& timer);
  void execute(const core::MemberChanged& changed);
  void execute(const core::HasJoined&) { log("joined"); }
  void execute(const core::HasLeft&) { has_left_ = true; }
  void execute(const core::NameRefused& refused);
  void execute(const core::MemberRefused& refused);

  void on_revoked(const security::Merged& merged);
  /// Logs that no seed node answers.
  void tell_loneliness();

  [[nodiscard]] core::Time now() const { return EventLoop::Clock::now() - start_; }

  /// Live nodes, this one first.
  [[nodiscard]] std::vector<core::NodeRecord> live_nodes() const;

  // --- sending (cluster_messages.cpp) ---

  template <class Body>
  void send(const std::string& address, Body body, wire::TrafficClass traffic_class) {
    endpoint_->send(address, traffic_class,
                    wire::encode(wire::ControlMessage{id_, address_, std::move(body)}));
  }

  void reply(const Requester& requester, wire::ReplyBody body);

  void ask(const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds timeout,
           Requests::OnReply on_reply) {
    requests_.ask(target, std::move(body), timeout, std::move(on_reply));
  }

  /// From members' threads.
  void send_frames(NodeId node, wire::TrafficClass traffic_class, std::span<wire::Frame> frames);

  // --- jobs (cluster_sweeps.cpp) ---

  /// Any thread.
  JobPtr find(JobId id) const {
    const std::shared_lock lock{jobs_mutex_};
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? nullptr : job->second;
  }
  std::map<JobId, JobPtr> all_jobs() const {
    const std::shared_lock lock{jobs_mutex_};
    return jobs_;
  }

  /// Whether the node has left, or is dead, as far as that is believed.
  [[nodiscard]] bool is_gone(NodeId node) const { return nodes_.lives(node, now()) == false; }

  void sweep();
  void sweep_jobs();
  /// Whether the node is alive and not suspected: a node that is partitioned off suspects the
  /// others long before it declares them dead.
  [[nodiscard]] bool is_responsive(NodeId node) const;
  [[nodiscard]] std::string name_of(NodeId node) const;
  /// Lets members that were wrongly declared dead join again, in a new incarnation.
  void rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports);
  /// Forgets records that nobody asks about any more.
  void forget_old();
  /// Asks a random node for jobs that run without this one.
  void look_for_jobs();

  /// Discards what was prepared and reserved for a job that does not start here.
  void drop_preparations(JobId id) {
    prepared_.forget(id);
    slots_.release(id);
  }

  // --- requests about jobs (cluster_jobs.cpp) ---

  wire::NodeStatus make_status();
  /// Jobs that have a slot and have not started.
  [[nodiscard]] std::vector<wire::JobStatus> preparing() const;
  void answer(const Requester& requester, const wire::GetLog& request);
  void answer(const Requester& requester, const wire::GetJobRecords&);
  void answer(const Requester& requester, const wire::StopJob& request);
  void answer(const Requester& requester, const wire::CloseJob& request);
  /// Keeps a record of how the job ended, and tears it down.
  void close_job(JobId id, const std::optional<wire::JobSummary>& summary);

  // --- requests (cluster_requests.cpp) ---

  /// Tries to join a job that runs without this node, unless it has tried before.
  void try_to_join(const wire::JobStatus& job, const NodeAddress& target);
  /// Starts a prepared job: a new one or, with an `age`, one that runs elsewhere and is that old. A
  /// job that is known already is left as it is.
  Result<JobPtr> start_job(JobId id, const core::ConfigurationPtr& configuration,
                           std::optional<std::chrono::milliseconds> age);
  void answer(const Requester& requester, const wire::GetStatus&);
  void answer(const Requester& requester, const wire::PrepareJob& request);
  Result<void> reserve_slot(const wire::PrepareJob& request);
  /// Reserves compute threads for the job; an Error where its limits leave too few.
  Result<void> reserve_threads(JobId id, const PreparedJob& prepared);
  void answer(const Requester& requester, const wire::StartJob& request);
  /// Gives what was prepared and reserved for job `previous_id` to `job`, the same job under a new
  /// number, and tears the former one down.
  void replace(JobId previous_id, JobId job);
  /// Remembers that the job is closed, and has its actors ended by the reaper: until they have, it
  /// is being torn down.
  void tear_down(JobId id);
  void answer(const Requester& requester, const wire::GetJob& request);
  void answer(const Requester& requester, const wire::ReadRanges& request);
  void answer(const Requester& requester, const wire::PauseJob& request);
  void answer(const Requester& requester, const wire::SubmitJob& request);
  void answer(const Requester& requester, const wire::LeaveCluster&);
  void answer(const Requester& requester, const wire::Disconnect&);

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
  /// How long an attempt to join a job is remembered, so that it is not repeated sooner; and how
  /// long a concluded submission is.
  static constexpr core::Time attempt_retention = std::chrono::minutes{10};
  /// A prepared job that has not started after this is dropped: the node that asked for it has
  /// died, or has left this node out.
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
  PreparedJobs prepared_{loop_, options_.prepare_job};
  std::size_t hanging_ = 0;
  JobSlots slots_{options_.limits};
  Submissions submissions_{
      prepared_,
      [this](NodeId node) { return is_gone(node); },
      [this](const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds timeout,
             Requests::OnReply on_reply) {
        ask(target, std::move(body), timeout, std::move(on_reply));
      },
      [this](const Requester& requester, wire::ReplyBody body) {
        reply(requester, std::move(body));
      },
      [this](const std::string& line, const std::string& job) { log_buffer_.add(line, job); },
      [this](wire::JobRecord record) { history_.add(std::move(record), now()); }};
  NodeTable nodes_;
  /// Nodes that were refused for their names.
  std::set<NodeId> refused_;
  /// When this node started each of its jobs, or tried to join a job.
  std::map<JobId, core::Time> join_attempts_;
  std::map<JobId, core::Time> closed_;
  JobHistory history_;
  /// Known nodes whose certificate was revoked.
  std::set<NodeId> revoked_;

  /// Guards jobs_, refusal_ and endpoint_, which other threads read; the loop's thread writes them.
  mutable std::shared_mutex jobs_mutex_;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::size_t> waiting_bytes_ = 0;
  std::map<JobId, JobPtr> jobs_;
  std::string refusal_;
  std::unique_ptr<security::Endpoint> endpoint_;
  std::unique_ptr<Reaper> reaper_ = std::make_unique<Reaper>();
  EventLoop loop_;
};

}  // namespace starling::actor
