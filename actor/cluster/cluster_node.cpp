#include "starling/actor/cluster/cluster_node.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

const std::string& PreparedJob::notes() const {
  static const std::string none;
  return none;
}
Result<void> PreparedJob::check_range(const core::RangeState&) const {
  return Error{"the job has no model"};
}
Result<wire::ModelMetrics> PreparedJob::evaluate(const wire::EvaluateModel&) const {
  return Error{"the job has no model"};
}

Result<std::unique_ptr<ClusterNode>> ClusterNode::open(ClusterOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto opened = impl->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterNode>{new ClusterNode{std::move(impl)}};
}

ClusterNode::ClusterNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterNode::~ClusterNode() = default;

const std::string& ClusterNode::address() const { return impl_->address(); }
wire::NodeId ClusterNode::id() const { return impl_->id(); }
wire::NodeStatus ClusterNode::status() { return impl_->status(); }
void ClusterNode::set_seeds(std::vector<std::string> seeds) { impl_->set_seeds(std::move(seeds)); }
bool ClusterNode::is_asked_to_leave() const { return impl_->is_asked_to_leave(); }
std::string ClusterNode::refusal() const { return impl_->refusal(); }
void ClusterNode::leave(std::chrono::milliseconds timeout) { impl_->leave(timeout); }
std::size_t ClusterNode::stop_readers() { return impl_->stop_readers(); }

// --- start and end ---

ClusterNode::Impl::~Impl() {
  stop_readers();
  loop_.close();
  // Destroys the jobs before the endpoint, because their members send packets until their actors
  // have ended. Packets that arrive in the meantime are dropped.
  std::map<JobId, JobPtr> teardowns;
  {
    const std::unique_lock lock{state_mutex_};
    teardowns.swap(jobs_);
  }
  // The endpoint's thread may still deliver a packet to a job. The reaper waits for that, so that
  // no job ends on that thread while the endpoint is destroyed.
  for (auto& [id, job] : teardowns) reaper_->destroy(std::move(job));
  reaper_.reset();
  endpoint_.reset();
}

Result<void> ClusterNode::Impl::open() {
  security::EndpointOptions network = options_.network;
  network.on_revoked = [this](const security::MergeResult& merged) {
    loop_.post([this, merged] { on_revoked(merged); });
  };
  auto endpoint = security::Endpoint::open(
      std::move(network), [this](const wire::FrameView& frame, const security::Sender& sender) {
        receive(frame, sender);
      });
  if (!endpoint) return std::move(endpoint).error();
  address_ = (*endpoint)->address();
  const std::string location = wire::without_key(address_);
  name_ = options_.name +
          (options_.appends_port_to_name ? "-" + location.substr(location.rfind(':') + 1) : "");
  core::MembershipOptions membership;
  membership.self = {.id = id_, .address = address_, .name = name_, .workers = options_.workers};
  membership.seeds = options_.seeds;
  membership_ = std::make_unique<core::Membership>(std::move(membership), wire::draw_id());
  {
    const std::unique_lock lock{state_mutex_};
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

void ClusterNode::Impl::leave(std::chrono::milliseconds timeout) {
  const auto started_at = EventLoop::Clock::now();
  const auto leave_cluster = [this] {
    run_membership([](core::Membership& m, const auto& c) { m.leave(c); });
  };
  // nullopt: the loop is busy. False: too few other nodes are left to hand over to.
  const auto loop_answer = loop_.call_within(std::min(timeout, loop_timeout), [this] {
    is_leaving_ = true;
    // A member that has not started yet would not leave.
    while (!starting_.empty()) finish_start(starting_.begin()->first, Error{leaving_reason});
    const bool may_hand_over = can_hand_over();  // before leave(), which ends the state `running`
    for (auto& [id, job] : all_jobs()) job->local().leave();
    return may_hand_over;
  });
  if (!loop_answer) {
    log("is busy starting a job: leaves without handing over");
    return loop_.post(leave_cluster);
  }
  const auto wait_time = *loop_answer ? timeout : std::min(timeout, hand_over_time_if_too_few);
  const auto deadline = started_at + wait_time;
  while (EventLoop::Clock::now() < deadline && !has_handed_over())
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  loop_.post(leave_cluster);
  while (EventLoop::Clock::now() < deadline && !has_left_)
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
}

bool ClusterNode::Impl::can_hand_over() {
  const std::vector<core::NodeRecord> live = live_nodes();
  bool has_enough_nodes = true;
  for (auto& [id, job] : all_jobs()) {
    const JobOptions& options = job->prepared().options();
    const std::size_t replication_factor = options.replication_factor;
    const bool has_owners = placed_ranges(options, job->prepared().ranges()) > 0;
    const core::ConfigurationPtr configuration = job->configuration();
    // A node outside the job can join it, and take over ranges, only while the job runs. Without a
    // worker of the job, this node does not know whether it runs, and assumes that it does.
    const bool has_workers = std::ranges::any_of(
        configuration->members,
        [this](const core::Member& member) { return member.node == id_ && member.works; });
    const bool may_be_joined =
        !has_workers ||
        std::ranges::count(job->local().reports(), actor::MemberReport::State::running,
                           &actor::MemberReport::state) > 0;
    const auto others = std::ranges::count_if(live, [&](const core::NodeRecord& node) {
      return node.id != id_ && (may_be_joined || std::ranges::count(configuration->members, node.id,
                                                                    &core::Member::node) > 0);
    });
    if (std::cmp_greater_equal(others, replication_factor) || !has_owners) continue;
    has_enough_nodes = false;
    log_for_job(id, "each of its ranges has " + std::to_string(replication_factor) +
                        " replicas, and there " + (others == 1 ? "is only " : "are only ") +
                        std::to_string(others) + (others == 1 ? " other node" : " other nodes") +
                        " of the job: this node leaves without making new replicas" +
                        (others == 0 ? ", and the job's model is lost" : ""));
  }
  return has_enough_nodes;
}

bool ClusterNode::Impl::has_handed_over() {
  for (auto& [id, job] : all_jobs())
    for (const auto& report : job->local().reports())
      if (report.state != actor::MemberReport::State::excluded &&
          report.state != actor::MemberReport::State::failed)
        return false;
  return true;
}

}  // namespace starling::actor
