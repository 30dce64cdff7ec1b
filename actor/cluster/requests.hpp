/// The requests of a node to others that are not answered yet. Internal to the cluster's node.
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

/// The address that a reply goes to, and the number of the request.
struct Requester {
  std::string address;
  std::uint64_t number = 0;
  /// The name under which limits count the requester.
  std::string client = {};
};

/// A node to ask. Node 0: any node at the address.
struct NodeAddress {
  wire::NodeId node = 0;
  std::string address;
};

/// On the loop's thread alone.
class Requests {
 public:
  using OnReply = std::function<void(Result<wire::ReplyBody>)>;
  /// Sends a request, which may get lost.
  using Send = std::function<void(const std::string& address, wire::Request)>;

  Requests(EventLoop& loop, std::uint64_t seed, Send send)
      : loop_(loop), random_(seed), send_(std::move(send)) {}

  /// Sends the request every 500 ms until it is answered, or gives up after `timeout` with an
  /// Error.
  void ask(const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds timeout,
           OnReply on_reply) {
    const std::uint64_t number = random_();
    pending_.emplace(number, Pending{target, std::move(body), std::move(on_reply),
                                     EventLoop::Clock::now() + timeout});
    send(number);
  }

  /// Ends the requests to nodes of which `is_gone(node)` holds, each with an Error.
  template <class IsGone>
  void end_those_to(IsGone is_gone) {
    std::vector<std::uint64_t> ending;
    for (const auto& [number, pending] : pending_)
      if (pending.target.node != 0 && is_gone(pending.target.node)) ending.push_back(number);
    for (const std::uint64_t number : ending)
      end(number,
          Error{"the node at " + wire::place_of(pending_.at(number).target.address) + " is gone"});
  }

  /// Takes a reply. `key` is its sender's; absent where nothing is encrypted.
  void take(const wire::Reply& reply, const std::optional<wire::Key>& key) {
    const auto pending = pending_.find(reply.number);
    if (pending == pending_.end()) return;
    const auto asked = wire::parse_peer(pending->second.target.address);
    if (!asked || asked->key != key) return;
    end(reply.number, reply.body);
  }

 private:
  struct Pending {
    NodeAddress target;
    wire::RequestBody body;
    OnReply on_reply;
    EventLoop::Clock::time_point deadline;
  };
  static constexpr std::chrono::milliseconds again_after{500};

  void send(std::uint64_t number) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    if (EventLoop::Clock::now() > pending.deadline)
      return end(number, Error{"no answer from " + wire::place_of(pending.target.address)});
    send_(pending.target.address, wire::Request{number, pending.body});
    loop_.post_after(again_after, [this, number] { send(number); });
  }

  void end(std::uint64_t number, Result<wire::ReplyBody> how) {
    const auto ended = pending_.extract(number);
    if (ended) ended.mapped().on_reply(std::move(how));
  }

  EventLoop& loop_;
  Random random_;
  const Send send_;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace starling::actor
