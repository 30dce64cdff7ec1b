/// What a node has asked others and not heard the answer to. Internal to the cluster's node.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "starling/actor/wire/control.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/live/event_loop.hpp"

namespace starling::live {

/// Whom to answer, and under which number.
struct Asker {
  std::string address;
  std::uint64_t number = 0;
  bool operator==(const Asker&) const = default;
};

/// On the loop's thread alone.
class Requests {
 public:
  using OnReply = std::function<void(Result<wire::ReplyBody>)>;
  /// Sends it, perhaps in vain.
  using Say = std::function<void(const std::string& address, wire::Request)>;

  Requests(EventLoop& loop, std::uint64_t seed, Say say)
      : loop_(loop), random_(seed), say_(std::move(say)) {}

  /// Says it again and again until it is answered, or gives up with an Error.
  void ask(const std::string& address, wire::RequestBody body, std::chrono::milliseconds within,
           OnReply on_reply) {
    const std::uint64_t number = random_();
    pending_.emplace(number, Pending{address, std::move(body), std::move(on_reply),
                                     EventLoop::Clock::now() + within});
    say(number);
  }

  /// `key`: whose the reply is; absent where nothing is encrypted.
  void take(const wire::Reply& reply, const std::optional<wire::Key>& key) {
    const auto pending = pending_.find(reply.number);
    if (pending == pending_.end()) return;
    const auto asked = wire::parse_peer(pending->second.address);
    if (!asked || asked->key != key) return;
    const OnReply on_reply = std::move(pending->second.on_reply);
    pending_.erase(pending);
    on_reply(reply.body);
  }

 private:
  struct Pending {
    std::string address;
    wire::RequestBody body;
    OnReply on_reply;
    EventLoop::Clock::time_point give_up;
  };
  static constexpr std::chrono::milliseconds again_after{500};

  void say(std::uint64_t number) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    if (EventLoop::Clock::now() > pending.give_up) {
      const OnReply on_reply = std::move(pending.on_reply);
      const std::string address = std::move(pending.address);
      pending_.erase(found);
      return on_reply(Error{"no answer from " + wire::place_of(address)});
    }
    say_(pending.address, wire::Request{number, pending.body});
    loop_.post_after(again_after, [this, number] { say(number); });
  }

  EventLoop& loop_;
  Random random_;
  const Say say_;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace starling::live
