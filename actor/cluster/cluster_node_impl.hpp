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
#include "starling/actor/cluster/evaluations.hpp"
#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/cluster/job_history.hpp"
#include "starling/actor/cluster/job_slots.hpp"
#include "starling/actor/cluster/log_buffer.hpp"
#include "starling/actor/cluster/node_table.hpp"
#include "starling/actor/cluster/prepared_jobs.hpp"
#include "starling/actor/cluster/requests.hpp"
#include "starling/actor/cluster/submissions.hpp"
#include "starling/actor/reaper.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// Threads other than the loop's may call the public functions, log(), static functions, and
/// functions whose comments say so. Only the loop's thread calls all other functions.
class ClusterNode::Impl {
 public:
  using JobId = wire::JobId;
  using NodeId = wire::NodeId;

  explicit Impl(ClusterOptions options)
      : options_(std::move(options)), id_(wire::draw_id()), random_(wire::draw_id()) {}

  ~Impl();

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// See ClusterNode::stop_readers(). Call on any thread but the loop's.
  std::size_t stop_readers() {
    hanging_readers_ += prepared_.close();  // a second close() returns 0
    return hanging_readers_ + evaluations_.close();
  }

  Result<void> open();

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] bool is_asked_to_leave() const { return is_asked_to_leave_; }
  [[nodiscard]] std::string refusal() const {
    const std::shared_lock lock{state_mutex_};
    return refusal_;
  }

  /// Call on any thread but the loop's.
  wire::NodeStatus status() {
    return loop_.call([this] { return make_status({}); });
  }

  void set_seeds(std::vector<std::string> seeds) {
    loop_.post([this, seeds = std::move(seeds)] { membership_->set_seeds(seeds); });
  }

  /// See ClusterNode::leave(). Call on any thread but the loop's.
  void leave(std::chrono::milliseconds timeout);

 private:
  using JobPtr = std::shared_ptr<ClusterJob>;

  void log(const std::string& line) { log_buffer_.add(line); }
  void log_for_job(JobId job, const std::string& line) { log_buffer_.add(line, name_of_job(job)); }
  /// Returns the job's name; its id in decimal if it has no valid name, or if this node does not
  /// know the job.
  [[nodiscard]] std::string name_of_job(JobId job) const;

  /// Returns true if there are enough other live nodes to hold all replicas of every job's ranges.
  /// Logs each job with too few nodes: its ranges have fewer replicas once this node has left.
  bool can_hand_over();
  /// Returns true if all members here have left their jobs or have failed. Any thread may call it.
  bool has_handed_over();

  // --- receiving (cluster_messages.cpp) ---

  /// Called on the endpoint's thread with each frame. Delivers a packet of a job's member to the
  /// job, and queues a control message for the loop. Drops a frame that is malformed, that its
  /// sender may not send, or that does not fit in the queue (`waiting_bytes_max`).
  void receive(const wire::FrameView& frame, const security::Sender& sender);
  /// Called on the endpoint's thread. Logs why a frame was dropped whose kind cannot be read, at
  /// most once in `drop_log_period`, because many such frames may arrive.
  void log_drop(const std::string& why);
  /// Returns true if `sender` may send packets of members on `node`: it has the key in the node's
  /// address, or nothing is encrypted. Called on the endpoint's thread.
  bool may_send_as(NodeId node, const security::Sender& sender);
  /// True if a client may send this message: a request, except one to prepare or start a job.
  static bool may_come_from_client(const wire::ControlMessage& message);
  void handle(const wire::ControlMessage& message, const std::optional<security::Key>& public_key);
  /// Returns the name of a client by which JobLimits are applied: the name in its certificate or,
  /// without keys, its host.
  [[nodiscard]] std::string client_name(const std::string& address,
                                        const std::optional<security::Key>& public_key) const;

  // --- membership (cluster_membership.cpp) ---

  /// Calls `event(membership, context)`, and executes the effects.
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
  /// While no seed node has answered, logs that this node is on its own, at most once in
  /// `isolation_log_period`.
  void log_isolation();

  /// Returns the time since this node's start. Any thread may call it.
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

  /// Any thread may call find() and all_jobs(). find() returns nullptr if the job is not here.
  JobPtr find(JobId id) const {
    const std::shared_lock lock{state_mutex_};
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? nullptr : job->second;
  }
  std::map<JobId, JobPtr> all_jobs() const {
    const std::shared_lock lock{state_mutex_};
    return jobs_;
  }

  /// Returns true if the node has left, or was declared dead NodeTable::death_believed_after ago or
  /// earlier. Returns false for a node that is live or is not known.
  [[nodiscard]] bool is_gone(NodeId node) const {
    return nodes_.is_believed_live(node, now()) == false;
  }

  /// Calls sweep_jobs() at once, and again after every `sweep_period`.
  void sweep();
  /// Fails the requests to nodes that are gone, continues the submissions without these nodes, and
  /// checks the jobs here.
  void sweep_jobs();
  /// Returns the nodes on which members of the jobs here run.
  [[nodiscard]] std::set<NodeId> nodes_of_jobs() const;
  /// Returns the name of another node; "(unknown)" if this node does not know it.
  [[nodiscard]] std::string name_of(NodeId node) const;
  /// Replaces each member here that the council has removed as dead by a new member, which asks to
  /// join.
  void rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports);
  /// Deletes records that are older than the retention times below, and records of dead nodes that
  /// membership has forgotten. Discards prepared jobs that were not started in time. Replaces the
  /// reaper's threads that hang.
  void expire_records();
  /// Calls expire_records() and log_isolation(). Unless this node is leaving, also compares
  /// revocations with a random live node, asks it which jobs it runs, and tries to join the jobs
  /// that run without this node. Repeats itself after `look_for_jobs_period`.
  void look_for_jobs();

  /// Discards the data and the slot of a job that does not start here, or that is closed.
  void drop_preparations(JobId id) {
    prepared_.forget(id);
    job_slots_.release(id);
  }

  // --- requests about jobs (cluster_jobs.cpp) ---

  wire::NodeStatus make_status(const wire::GetStatus& request);
  /// Returns the status of a job that has a slot and has not started; nullopt for another job.
  [[nodiscard]] std::optional<wire::JobStatus> status_if_preparing(JobId id) const;
  void answer(const Requester& requester, const wire::GetLog& request);
  void answer(const Requester& requester, const wire::GetJobRecords&);
  void answer(const Requester& requester, const wire::GetTrace& request);
  void answer(const Requester& requester, const wire::GetResult& request);
  void answer(const Requester& requester, const wire::GetFlowReport& request);
  void answer(const Requester& requester, const wire::GetJobNotes& request);
  void answer(const Requester& requester, const wire::EvaluateModel& request);
  void answer(const Requester& requester, const wire::StopJob& request);
  void answer(const Requester& requester, const wire::CloseJob& request);
  /// If the job is here, records and logs how it ended. Then tears it down.
  void close_job(JobId id, const std::optional<wire::JobSummary>& summary);

  // --- requests (cluster_requests.cpp) ---

  static wire::Refused refuse_unknown(JobId id);
  /// Tries to join a job that the node at `address` runs and this node does not, unless this node
  /// has tried within `attempt_retention`. If the job is closed here, asks that node to close it.
  void try_to_join(const wire::JobStatus& job, const NodeAddress& address);
  /// Starts this node's part of a prepared job. If `joined_job_age` is absent, the job is new, and
  /// `configuration` names this node's first members. Otherwise the job has this age and runs on
  /// other nodes, and new members of this node ask to join it. Calls `on_started` once the user's
  /// on_start has returned, or with an Error if the job does not start here. If the job was started
  /// before, `on_started` gets the result of that start.
  void start_job(JobId id, const core::ConfigurationPtr& configuration,
                 std::optional<std::chrono::milliseconds> joined_job_age,
                 LocalJob::OnStarted on_started);
  void log_start(JobId id, bool is_joining);
  /// Makes this node's part of a prepared job, without members. Returns an Error if the job was not
  /// prepared here, or if `configuration` does not fit it.
  Result<JobPtr> make_job(JobId id, const core::ConfigurationPtr& configuration,
                          std::optional<std::chrono::milliseconds> joined_job_age);
  /// Starts the job's members or, if `started` is an Error, ends the job here. Calls the callbacks
  /// of start_job().
  void finish_start(JobId id, const Result<void>& started);
  void answer(const Requester& requester, const wire::GetStatus& request);
  void answer(const Requester& requester, const wire::PrepareJob& request);
  /// Reserves a slot for the job. Returns an Error if the node's limits leave no slot, or if too
  /// many closed jobs are being torn down.
  Result<void> reserve_slot(const wire::PrepareJob& request);
  /// Reserves compute threads for the job, or returns an Error if the node's limits leave too few.
  Result<void> reserve_threads(JobId id, const PreparedJob& prepared);
  void answer(const Requester& requester, const wire::StartJob& request);
  /// Stops the workers of a job here and on the other nodes that have members.
  void stop_everywhere(JobId id);
  /// Asks `node` to stop the workers of a job. Repeats this until the node has done so, as long as
  /// the job is here, and `node` is known and has a member of the job.
  void stop_at(NodeId node, JobId id);
  /// Moves the data and the slot of job `previous_id` to `new_id`, with which the same job starts
  /// again, and tears down the job with `previous_id`.
  void reuse_preparations(JobId previous_id, JobId new_id);
  /// Marks the job as closed. If it is here, destroys it; if it is still starting, calls the
  /// callbacks of start_job() with an Error.
  void tear_down(JobId id);
  /// Removes a job from jobs_, and hands it to the reaper.
  void destroy_job(JobId id);
  void answer(const Requester& requester, const wire::GetJob& request);
  void answer(const Requester& requester, const wire::ReadRanges& request);
  void answer(const Requester& requester, const wire::PauseJob& request);
  void answer(const Requester& requester, const wire::SubmitJob& request);
  void answer(const Requester& requester, const wire::LeaveCluster&);
  void answer(const Requester& requester, const wire::Disconnect&);

  static constexpr auto sweep_period = std::chrono::milliseconds{250};
  /// Up to this many closed jobs are destroyed at the same time, so that a job whose computation
  /// never returns does not delay the others. While Reaper::pending_count() is at least this, the
  /// node refuses PrepareJob and joins no job.
  static constexpr std::size_t teardowns_max = 4;
  /// How long a leaving node waits for the hand-over if there are too few other nodes to hold all
  /// replicas.
  static constexpr std::chrono::milliseconds hand_over_time_if_too_few = std::chrono::seconds{3};
  /// How long leave() waits for the loop's thread, which may be busy starting a job.
  static constexpr std::chrono::milliseconds loop_timeout{1500};
  /// The shortest time between two log lines about dropped frames.
  static constexpr auto drop_log_period = std::chrono::seconds{30};
  /// The shortest time between two log lines that say that no seed node answers. The first line
  /// comes 3 s after the start.
  static constexpr core::Time isolation_log_period = std::chrono::seconds{30};
  static constexpr auto look_for_jobs_period = std::chrono::seconds{1};
  /// How long the node remembers the outcome of a submission, and that it has started a job or
  /// tried to join it. In this time it does not try to join the job again.
  static constexpr core::Time attempt_retention = std::chrono::minutes{10};
  /// A job that has not started this long after its slot was reserved is discarded: the node that
  /// asked to prepare it has died, or has started the job without this node.
  static constexpr core::Time prepared_retention = std::chrono::minutes{10};
  /// The most nodes in name_conflicts_. As long as a node is in it, the node's conflict is not
  /// logged again.
  static constexpr std::size_t name_conflicts_max = 1000;
  /// The most closed jobs that are remembered. If a node was partitioned off when a job was closed,
  /// it may still run the job when it returns; try_to_join() then asks it to close the job.
  static constexpr std::size_t closed_jobs_max = 65'536;
  static constexpr core::Time closed_retention = std::chrono::hours{24};
  /// The most bytes of control messages that wait for the loop's thread; receive() drops further
  /// ones. A message counts with the bytes of its frame, plus `message_overhead`.
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
  Evaluations evaluations_{loop_};
  /// The number of readers that had not ended when stop_readers() returned.
  std::atomic<std::size_t> hanging_readers_ = 0;
  JobSlots job_slots_{options_.limits};
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
  /// The nodes that this node has refused because another node has their name.
  std::set<NodeId> name_conflicts_;
  /// The callbacks of each job whose on_start has not returned yet.
  std::map<JobId, std::vector<LocalJob::OnStarted>> starting_;
  /// When this node was asked to start each job, or tried to join it; kept for `attempt_retention`.
  std::map<JobId, core::Time> join_attempts_;
  /// When each closed job was closed.
  std::map<JobId, core::Time> closed_jobs_;
  JobHistory history_;
  /// The nodes whose certificates were revoked while this node knew them.
  std::set<NodeId> revoked_;

  /// Guards jobs_, refusal_ and endpoint_, which several threads read. Only the loop's thread
  /// writes them, except in open() and in the destructor.
  mutable std::shared_mutex state_mutex_;
  /// True once endpoint_ is set. receive() drops frames that arrive earlier.
  std::atomic<bool> is_open_ = false;
  /// The bytes of the control messages that wait for the loop's thread.
  std::atomic<std::size_t> waiting_bytes_ = 0;
  std::map<JobId, JobPtr> jobs_;
  std::string refusal_;
  std::unique_ptr<security::Endpoint> endpoint_;
  std::unique_ptr<Reaper> reaper_ = std::make_unique<Reaper>(teardowns_max);
  EventLoop loop_;
};

}  // namespace starling::actor
