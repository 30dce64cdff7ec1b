/// The requests that a node has sent to other nodes and that are not answered yet. Internal to
/// ClusterNode.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

/// Identifies the sender of a request.
struct Requester {
  /// The address that the reply goes to.
  std::string address;
  /// The number of the request.
  std::uint64_t number = 0;
  /// The requester's name, by which JobLimits count its jobs and threads.
  std::string client = {};
};

/// The node that a request is for. If `node` is 0, the request is for whichever node has the
/// address.
struct NodeAddress {
  wire::NodeId node = 0;
  std::string address;
};

/// Call only on the loop's thread.
class Requests {
 public:
  using OnReply = std::function<void(Result<wire::ReplyBody>)>;
  /// Sends a request, which may be lost on its way.
  using Send = std::function<void(const std::string& address, wire::Request)>;

  Requests(EventLoop& loop, std::uint64_t seed, Send send)
      : loop_(loop), random_(seed), send_(std::move(send)) {}

  /// Sends a request, and repeats it every 500 ms until it is answered. Calls `on_reply` with the
  /// reply; with an Error after `timeout`, or when fail_requests_to() fails the request.
  void ask(const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds timeout,
           OnReply on_reply) {
    const std::uint64_t number = random_();
    pending_.emplace(number, Pending{target, std::move(body), std::move(on_reply),
                                     EventLoop::Clock::now() + timeout});
    send(number);
  }

  /// Fails, with an Error, the requests to nodes for which `is_gone(node)` is true.
  template <class IsGone>
  void fail_requests_to(IsGone is_gone) {
    std::vector<std::uint64_t> failed;
    for (const auto& [number, pending] : pending_)
      if (pending.target.node != 0 && is_gone(pending.target.node)) failed.push_back(number);
    for (const std::uint64_t number : failed)
      finish(number, Error{"the node at " + wire::without_key(pending_.at(number).target.address) +
                           " is gone"});
  }

  /// Passes a reply to the callback of its request. Ignores a reply that does not come from the
  /// node that was asked: `public_key` is the sender's, and absent if nothing is encrypted.
  void handle_reply(const wire::Reply& reply, const std::optional<wire::Key>& public_key) {
    const auto pending = pending_.find(reply.number);
    if (pending == pending_.end()) return;
    const auto asked = wire::parse_peer(pending->second.target.address);
    if (!asked || asked->key != public_key) return;
    finish(reply.number, reply.body);
  }

 private:
  struct Pending {
    NodeAddress target;
    wire::RequestBody body;
    OnReply on_reply;
    EventLoop::Clock::time_point deadline;
  };
  static constexpr std::chrono::milliseconds resend_after{500};

  void send(std::uint64_t number) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    if (EventLoop::Clock::now() > pending.deadline)
      return finish(number, Error{"no answer from " + wire::without_key(pending.target.address)});
    send_(pending.target.address, wire::Request{number, pending.body});
    loop_.post_after(resend_after, [this, number] { send(number); });
  }

  void finish(std::uint64_t number, Result<wire::ReplyBody> result) {
    const auto finished = pending_.extract(number);
    if (finished) finished.mapped().on_reply(std::move(result));
  }

  EventLoop& loop_;
  Random random_;
  const Send send_;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace starling::actor
