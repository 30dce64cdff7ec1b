/// How a node receives messages and sends its own.
#include <shared_mutex>
#include <utility>
#include <variant>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

void ClusterNode::Impl::receive(const wire::FrameView& frame, const security::Sender& sender) {
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

void ClusterNode::Impl::refuse(const std::string& why) {
  if (now() < refused_at_ + refusals_apart) return;
  refused_at_ = now();
  log("drops messages: " + why);
}

bool ClusterNode::Impl::is_from(NodeId node, const security::Sender& sender) {
  if (!sender.key) return true;
  bool may_be = false;
  nodes_.with(node, [&](const auto& known) { may_be = sender.may_be_at(known.address); });
  return may_be;
}

bool ClusterNode::Impl::is_for_clients(const wire::ControlMessage& message) {
  const auto* request = std::get_if<wire::Request>(&message.body);
  return request != nullptr && !std::holds_alternative<wire::PrepareJob>(request->body) &&
         !std::holds_alternative<wire::StartJob>(request->body);
}

void ClusterNode::Impl::take(const wire::ControlMessage& message,
                             const std::optional<security::Key>& key) {
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

std::string ClusterNode::Impl::client_of(const std::string& address,
                                         const std::optional<security::Key>& key) const {
  if (key) return endpoint_->name_of(*key);
  const std::string place = wire::place_of(address);
  const auto host = place.find("//");
  return place.substr(host == std::string::npos ? 0 : host + 2,
                      place.rfind(':') - (host == std::string::npos ? 0 : host + 2));
}

void ClusterNode::Impl::reply(const Requester& requester, wire::ReplyBody body) {
  const auto traffic_class = std::holds_alternative<wire::Ranges>(body)
                                 ? wire::TrafficClass::data
                                 : wire::TrafficClass::control;
  send(requester.address, wire::Reply{requester.number, std::move(body)}, traffic_class);
}

void ClusterNode::Impl::send_frames(NodeId node, wire::TrafficClass traffic_class,
                                    std::span<wire::Frame> frames) {
  const std::shared_lock lock{jobs_mutex_};
  if (!endpoint_) return;
  nodes_.with(node,
              [&](const auto& known) { endpoint_->send(known.address, traffic_class, frames); });
}

}  // namespace starling::actor
