/// The implementation of ClusterNode: its event loop, and everything that runs on the loop.
/// Internal to ClusterNode.
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

/// Functions run on the loop's thread unless their comments say otherwise.
class ClusterNode::Impl {
 public:
  using JobId = wire::JobId;
  using NodeId = wire::NodeId;

  explicit Impl(ClusterOptions options)
      : options_(std::move(options)), id_(wire::draw_id()), random_(wire::draw_id()) {}

  ~Impl();

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Call on any thread but the loop's.
  std::size_t stop_readers() { return hanging_readers_ += prepared_.close(); }

  Result<void> open();

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] bool is_asked_to_leave() const { return is_asked_to_leave_; }
  [[nodiscard]] std::string refusal() const {
    const std::shared_lock lock{state_mutex_};
    return refusal_;
  }

  /// Thread-safe.
  wire::NodeStatus status() {
    return loop_.call([this] { return make_status(); });
  }

  /// Call on any thread but the loop's.
  void leave(std::chrono::milliseconds timeout);

 private:
  using JobPtr = std::shared_ptr<ClusterJob>;

  void log(const std::string& line) { log_buffer_.add(line); }
  void log_for_job(JobId job, const std::string& line) { log_buffer_.add(line, name_of_job(job)); }
  /// The job's name, or its number if this node does not know the job.
  [[nodiscard]] std::string name_of_job(JobId job) const;

  /// True if there are enough other nodes to hold all replicas of every job's ranges. Logs each job
  /// for which there are not: its ranges then have fewer replicas.
  bool can_hand_over();
  /// True if all members here have left their jobs or have failed.
  bool has_handed_over();

  // --- receiving (cluster_messages.cpp) ---

  /// Called on the endpoint's thread with each frame. Delivers a packet to its job; queues a
  /// control message for the loop.
  void receive(const wire::FrameView& frame, const security::Sender& sender);
  /// On the endpoint's thread. Logs why a frame is dropped, but at most once in `drop_log_period`,
  /// because many such frames may arrive.
  void log_drop(const std::string& why);
  /// Returns true if `sender` may send packets in the name of `node`. Called on the endpoint's
  /// thread.
  bool may_send_as(NodeId node, const security::Sender& sender);
  /// True if a client may send this message: a request, except one to prepare or start a job.
  static bool may_come_from_client(const wire::ControlMessage& message);
  void handle(const wire::ControlMessage& message, const std::optional<security::Key>& public_key);
  /// The name of a client in JobLimits: its certificate's name or, without keys, its host.
  [[nodiscard]] std::string client_name(const std::string& address,
                                        const std::optional<security::Key>& public_key) const;

  // --- membership (cluster_membership.cpp) ---

  template <class Event>
  void run_membership(Event event) {
    std::vector<core::MembershipEffect> effects;
    event(*membership_, core::MembershipContext{now(), random_, effects});
    for (auto& effect : effects) std::visit([this](auto& e) { this->execute(e); }, effect);
  }

  void execute(core::MembershipSend& send);
  void execute(const core::SetTimer& timer);
  void execute(const core::NodeChanged& changed);
  void execute(const core::HasJoined&) { log("joined"); }
  void execute(const core::HasLeft&) { has_left_ = true; }
  void execute(const core::MustLeave& order);
  void execute(const core::NodeRefused& refused);

  void on_revoked(const security::MergeResult& merged);
  /// While no seed node has answered, logs this from time to time.
  void log_isolation();

  [[nodiscard]] core::Time now() const { return EventLoop::Clock::now() - started_at_; }

  /// Returns the live nodes, this one first.
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

  /// Called on the threads of jobs' members.
  void send_frames(NodeId node, wire::TrafficClass traffic_class, std::span<wire::Frame> frames);

  // --- jobs (cluster_sweeps.cpp) ---

  /// Thread-safe.
  JobPtr find(JobId id) const {
    const std::shared_lock lock{state_mutex_};
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? nullptr : job->second;
  }
  std::map<JobId, JobPtr> all_jobs() const {
    const std::shared_lock lock{state_mutex_};
    return jobs_;
  }

  /// True if the node has left or has died; false if that is not certain yet.
  [[nodiscard]] bool is_gone(NodeId node) const {
    return nodes_.is_believed_live(node, now()) == false;
  }

  /// Calls sweep_jobs() now and then every `sweep_period`.
  void sweep();
  void sweep_jobs();
  /// Returns the nodes on which members of the jobs here run.
  [[nodiscard]] std::set<NodeId> nodes_of_jobs() const;
  [[nodiscard]] std::string name_of(NodeId node) const;
  /// Starts a new member in place of each one that was wrongly declared dead; it asks to join.
  void rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports);
  /// Deletes records that are older than the retention times below, and records of unknown nodes.
  void expire_records();
  /// Asks a random node which jobs it runs, and tries to join those that run without this node.
  /// Also calls expire_records() and log_isolation(). Repeats itself after `look_for_jobs_period`.
  void look_for_jobs();

  /// Discards the data and the slot of a job that does not start here, or has ended.
  void drop_preparations(JobId id) {
    prepared_.forget(id);
    slots_.release(id);
  }

  // --- requests about jobs (cluster_jobs.cpp) ---

  wire::NodeStatus make_status();
  /// Returns the status of each job that has a slot and has not started.
  [[nodiscard]] std::vector<wire::JobStatus> preparing_jobs() const;
  void answer(const Requester& requester, const wire::GetLog& request);
  void answer(const Requester& requester, const wire::GetJobRecords&);
  void answer(const Requester& requester, const wire::GetTrace& request);
  void answer(const Requester& requester, const wire::GetResult& request);
  void answer(const Requester& requester, const wire::GetFlowReport& request);
  void answer(const Requester& requester, const wire::StopJob& request);
  void answer(const Requester& requester, const wire::CloseJob& request);
  /// Records how the job ended, and tears it down.
  void close_job(JobId id, const std::optional<wire::JobSummary>& summary);

  // --- requests (cluster_requests.cpp) ---

  static wire::Refused refuse_unknown(JobId id);
  /// Tries to join a job that runs on node `target` and not here, unless this node has tried
  /// before.
  void try_to_join(const wire::JobStatus& job, const NodeAddress& address);
  /// Starts this node's part of a prepared job. If `joined_job_age` is absent, the job is new, and
  /// this node bootstraps it; else this node joins a job that runs on other nodes and has this age.
  /// Returns the running job if it was started before.
  Result<JobPtr> start_job(JobId id, const core::ConfigurationPtr& configuration,
                           std::optional<std::chrono::milliseconds> joined_job_age);
  void answer(const Requester& requester, const wire::GetStatus&);
  void answer(const Requester& requester, const wire::PrepareJob& request);
  Result<void> reserve_slot(const wire::PrepareJob& request);
  /// Reserves compute threads for the job, or returns an Error if the node's limits leave too few.
  Result<void> reserve_threads(JobId id, const PreparedJob& prepared);
  void answer(const Requester& requester, const wire::StartJob& request);
  /// Stops the workers of a job here and on the other nodes that have members.
  void stop_everywhere(JobId id);
  /// Asks `node` to stop the workers of a job, until it has done so or has no member any more.
  void stop_at(NodeId node, JobId id);
  /// Moves the data and the slot of job `previous_id` to `new_id`, which is a new start of the same
  /// job, and tears the previous start down.
  void adopt_preparations(JobId previous_id, JobId new_id);
  /// Marks the job as closed, and hands it to the reaper, which waits for its actors to end.
  void tear_down(JobId id);
  void answer(const Requester& requester, const wire::GetJob& request);
  void answer(const Requester& requester, const wire::ReadRanges& request);
  void answer(const Requester& requester, const wire::PauseJob& request);
  void answer(const Requester& requester, const wire::SubmitJob& request);
  void answer(const Requester& requester, const wire::LeaveCluster&);
  void answer(const Requester& requester, const wire::Disconnect&);

  static constexpr auto sweep_period = std::chrono::milliseconds{250};
  /// Up to this many closed jobs are torn down at the same time, so that one whose step never
  /// returns does not delay the others. While this many are being torn down, the node refuses
  /// PrepareJob and joins no job.
  static constexpr std::size_t teardowns_max = 4;
  /// How long a leaving node waits for the hand-over if there are too few other nodes to hold all
  /// replicas.
  static constexpr std::chrono::milliseconds hand_over_time_if_too_few = std::chrono::seconds{3};
  /// How long a leaving node waits for the loop's thread, which may be making a job's model.
  static constexpr std::chrono::milliseconds loop_timeout{1500};
  /// The shortest time between two log lines about dropped frames.
  static constexpr auto drop_log_period = std::chrono::seconds{30};
  /// The shortest time between two log lines that say that no seed node answers. The first comes 3
  /// s after the start.
  static constexpr core::Time isolation_log_period = std::chrono::seconds{30};
  static constexpr auto look_for_jobs_period = std::chrono::seconds{1};
  /// How long the node remembers the outcome of a submission, and an attempt to join a job, which
  /// it does not repeat in this time.
  static constexpr core::Time attempt_retention = std::chrono::minutes{10};
  /// A prepared job that has not started after this time is discarded: the node that asked to
  /// prepare it has died, or has started the job without this node.
  static constexpr core::Time prepared_retention = std::chrono::minutes{10};
  /// The most nodes whose name conflicts are remembered; each conflict is logged once.
  static constexpr std::size_t name_conflicts_max = 1000;
  /// The most closed jobs that are remembered. A node that was partitioned off when a job was
  /// closed may still run it when it returns.
  static constexpr std::size_t closed_jobs_max = 65'536;
  static constexpr core::Time closed_retention = std::chrono::hours{24};
  /// The most bytes of control messages that wait for the loop's thread. Each message counts with
  /// its bytes and `message_overhead`.
  static constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20U;
  static constexpr std::size_t message_overhead = 1024;

  const ClusterOptions options_;
  const NodeId id_;
  Random random_;
  const EventLoop::Clock::time_point started_at_ = EventLoop::Clock::now();
  std::string address_;
  std::string name_;
  std::unique_ptr<core::Membership> membership_;
  bool is_leaving_ = false;
  core::Time drop_logged_at_ = -drop_log_period;
  core::Time isolation_logged_at_ = std::chrono::seconds{3} - isolation_log_period;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_asked_to_leave_ = false;
  LogBuffer log_buffer_{options_.log};

  Requests requests_{loop_, wire::draw_id(),
                     [this](const std::string& address, wire::Request request) {
                       send(address, std::move(request), wire::TrafficClass::control);
                     }};
  PreparedJobs prepared_{loop_, options_.prepare_job};
  std::size_t hanging_readers_ = 0;
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
  /// The nodes that the cluster has refused because another node has their name.
  std::set<NodeId> name_conflicts_;
  /// When this node started each of its jobs, or last tried to join it.
  std::map<JobId, core::Time> join_attempts_;
  /// When each closed job was closed.
  std::map<JobId, core::Time> closed_jobs_;
  JobHistory history_;
  /// The known nodes whose certificates were revoked.
  std::set<NodeId> revoked_;

  /// Guards jobs_, refusal_ and endpoint_: the loop's thread writes them, and other threads read.
  mutable std::shared_mutex state_mutex_;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::size_t> waiting_bytes_ = 0;
  std::map<JobId, JobPtr> jobs_;
  std::string refusal_;
  std::unique_ptr<security::Endpoint> endpoint_;
  std::unique_ptr<Reaper> reaper_ = std::make_unique<Reaper>(teardowns_max);
  EventLoop loop_;
};

}  // namespace starling::actor
