#include "starling/actor/cluster/cluster_node.hpp"

#include "starling/actor/cluster/cluster_node_running.hpp"

namespace starling::live {

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

}  // namespace starling::live
