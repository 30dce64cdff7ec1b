#include "starling/actor/cluster/cluster_node.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "starling/actor/cluster/cluster_node_running.hpp"

namespace starling::actor {

Result<std::unique_ptr<ClusterNode>> ClusterNode::open(ClusterOptions options) {
  auto running = std::make_unique<Running>(std::move(options));
  if (auto opened = running->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterNode>{new ClusterNode{std::move(running)}};
}

ClusterNode::ClusterNode(std::unique_ptr<Running> running) : running_(std::move(running)) {}
ClusterNode::~ClusterNode() = default;

const std::string& ClusterNode::address() const { return running_->address(); }
wire::NodeId ClusterNode::id() const { return running_->id(); }
wire::NodeStatus ClusterNode::status() { return running_->status(); }
bool ClusterNode::is_asked_to_leave() const { return running_->is_asked_to_leave(); }
std::string ClusterNode::refusal() const { return running_->refusal(); }
void ClusterNode::leave(std::chrono::milliseconds within) { running_->leave(within); }
std::size_t ClusterNode::end_readers() { return running_->end_readers(); }

// --- its beginning and its end ---

ClusterNode::Running::~Running() {
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

Result<void> ClusterNode::Running::open() {
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

void ClusterNode::Running::leave(std::chrono::milliseconds within) {
  const auto can_hand_over = loop_.call_within(std::min(within, busy_for), [this] {
    leaving_ = true;
    for (auto& [id, job] : all_jobs()) job->local().leave();
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

bool ClusterNode::Running::others_suffice() {
  const std::size_t others = live_nodes().size() - 1;
  bool suffice = true;
  for (auto& [id, job] : all_jobs()) {
    const std::size_t copies = job->prepared().options().copies;
    if (others >= copies) continue;
    suffice = false;
    log_of(id, "its ranges have " + std::to_string(copies) + " copies and there are " +
                   std::to_string(others) + " other nodes: leaves them the copies that they have");
  }
  return suffice;
}

bool ClusterNode::Running::has_handed_over() {
  for (auto& [id, job] : all_jobs())
    for (const auto& report : job->local().reports())
      if (report.state != actor::MemberReport::State::excluded &&
          report.state != actor::MemberReport::State::failed)
        return false;
  return true;
}

}  // namespace starling::actor
