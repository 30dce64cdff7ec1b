/// Asks the nodes of a cluster, from outside: submits jobs, follows them, fetches their models.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/security/endpoint.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

/// Blocking; one thread at a time.
class ClusterClient {
 public:
  /// It listens for replies.
  static Result<std::unique_ptr<ClusterClient>> open(security::EndpointOptions network);
  ~ClusterClient();

  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;

  /// Asks the node at `address`, as wire::print gives it, again and again until it answers. A
  /// refusal is an Error.
  [[nodiscard]] Result<wire::ReplyBody> ask(const std::string& address,
                                            const wire::RequestBody& body,
                                            std::chrono::milliseconds timeout);
  /// Asks all of them at once. Returns the reply of each, refusals too; nothing for a node that
  /// does not answer.
  [[nodiscard]] std::vector<std::optional<wire::ReplyBody>> ask_all(
      const std::vector<std::string>& addresses, const wire::RequestBody& body,
      std::chrono::milliseconds timeout);
  /// As ask() does, for a reply of kind R.
  template <class R>
  [[nodiscard]] Result<R> ask_for(const std::string& address, const wire::RequestBody& body,
                                  std::chrono::milliseconds timeout) {
    auto reply = ask(address, body, timeout);
    if (!reply) return std::move(reply).error();
    if (auto* wanted = std::get_if<R>(&*reply)) return std::move(*wanted);
    return Error{"the node at " + wire::place_of(address) + " gave an answer to another question"};
  }

 private:
  class Inbox;
  explicit ClusterClient(std::unique_ptr<Inbox> inbox);
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace starling::actor
