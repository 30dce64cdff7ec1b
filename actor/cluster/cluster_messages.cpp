/// How a node receives, checks and sends messages.
#include <shared_mutex>
#include <utility>
#include <variant>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

void ClusterNode::Impl::receive(const wire::FrameView& frame, const security::Sender& sender) {
  if (!is_open_) return;
  const auto kind = wire::kind_of(frame);
  if (!kind) return log_drop(kind.error().message);
  if (*kind == wire::Kind::envelope) {
    if (sender.role != security::Role::node) return;
    auto decoded = wire::decode_envelope(frame);
    if (!decoded || !may_send_as(decoded->node, sender)) return;
    if (const JobPtr job = find(decoded->job))
      job->deliver(decoded->node, std::move(decoded->envelope), frame.may_handle_inline);
    return;
  }
  auto decoded = wire::decode_control(frame);
  if (!decoded || !sender.may_use_address(decoded->address)) return;
  if (sender.role != security::Role::node && !may_come_from_client(*decoded)) return;
  const std::size_t bytes = frame.head.size() + frame.body.size() + message_overhead;
  // Drops the message if the loop is too far behind. Nothing is lost: nodes repeat requests and
  // gossip.
  if (waiting_bytes_ + bytes > waiting_bytes_max) return;
  waiting_bytes_ += bytes;
  loop_.post([this, bytes, message = *std::move(decoded), public_key = sender.key] {
    waiting_bytes_ -= bytes;
    handle(message, public_key);
  });
}

/// Logs at most one line per `drop_log_period`, so that a sender of bad frames cannot fill the log.
void ClusterNode::Impl::log_drop(const std::string& why) {
  if (now() < drop_logged_at_ + drop_log_period) return;
  drop_logged_at_ = now();
  log("drops messages: " + why);
}

bool ClusterNode::Impl::may_send_as(NodeId node, const security::Sender& sender) {
  // Without keys, nothing identifies a sender.
  if (!sender.key) return true;
  bool may_send = false;
  nodes_.visit(node,
               [&](const auto& record) { may_send = sender.may_use_address(record.address); });
  return may_send;
}

bool ClusterNode::Impl::may_come_from_client(const wire::ControlMessage& message) {
  const auto* request = std::get_if<wire::Request>(&message.body);
  return request != nullptr && !std::holds_alternative<wire::PrepareJob>(request->body) &&
         !std::holds_alternative<wire::StartJob>(request->body);
}

void ClusterNode::Impl::handle(const wire::ControlMessage& message,
                               const std::optional<security::Key>& public_key) {
  // The key may have been revoked while the message waited for the loop.
  if (public_key && !endpoint_->admits(*public_key)) return;
  if (const auto* gossip = std::get_if<core::MembershipMessage>(&message.body)) {
    // receive() has checked that the sender may use message.address; it may gossip for no other.
    if (gossip->from.address != message.address) return;
    run_membership([&](core::Membership& m, const auto& c) { m.on(c, *gossip); });
  } else if (const auto* request = std::get_if<wire::Request>(&message.body)) {
    const Requester requester{message.address, request->number,
                              client_name(message.address, public_key)};
    std::visit([&](const auto& body) { answer(requester, body); }, request->body);
  } else if (const auto* reply = std::get_if<wire::Reply>(&message.body)) {
    requests_.handle_reply(*reply, public_key);
  }
}

std::string ClusterNode::Impl::client_name(const std::string& address,
                                           const std::optional<security::Key>& public_key) const {
  if (public_key) return endpoint_->name_of(*public_key);
  const std::string location = wire::without_key(address);
  const auto scheme_end = location.find("//");
  const auto host_offset = scheme_end == std::string::npos ? 0 : scheme_end + 2;
  return location.substr(host_offset, location.rfind(':') - host_offset);
}

void ClusterNode::Impl::reply(const Requester& requester, wire::ReplyBody body) {
  const auto traffic_class = std::holds_alternative<wire::Ranges>(body)
                                 ? wire::TrafficClass::data
                                 : wire::TrafficClass::control;
  send(requester.address, wire::Reply{requester.number, std::move(body)}, traffic_class);
}

void ClusterNode::Impl::send_frames(NodeId node, wire::TrafficClass traffic_class,
                                    std::span<wire::Frame> frames) {
  // The lock keeps open() from setting endpoint_ meanwhile.
  const std::shared_lock lock{state_mutex_};
  if (!endpoint_) return;
  nodes_.visit(node,
               [&](const auto& record) { endpoint_->send(record.address, traffic_class, frames); });
}

}  // namespace starling::actor
