/// A client of a cluster: sends requests to nodes, such as to submit a job or to read its model,
/// and waits for the replies.
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

/// Its functions block. For one thread at a time.
class ClusterClient {
 public:
  /// Opens an endpoint, at which the client listens for replies.
  static Result<std::unique_ptr<ClusterClient>> open(security::EndpointOptions network);
  ~ClusterClient();

  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;

  /// Sends a request to the node at `address`, as wire::print writes it, and repeats it until the
  /// node answers. Returns an Error if it refuses, or does not answer within `timeout`.
  [[nodiscard]] Result<wire::ReplyBody> ask(const std::string& address,
                                            const wire::RequestBody& body,
                                            std::chrono::milliseconds timeout);
  /// Sends the request to all of them at once. Returns their replies in the same order, with
  /// refusals; nullopt for a node that does not answer within `timeout`.
  [[nodiscard]] std::vector<std::optional<wire::ReplyBody>> ask_all(
      const std::vector<std::string>& addresses, const wire::RequestBody& body,
      std::chrono::milliseconds timeout);
  /// As ask(), for a request whose reply is an R.
  template <class R>
  [[nodiscard]] Result<R> ask_for(const std::string& address, const wire::RequestBody& body,
                                  std::chrono::milliseconds timeout) {
    auto reply = ask(address, body, timeout);
    if (!reply) return std::move(reply).error();
    if (auto* wanted = std::get_if<R>(&*reply)) return std::move(*wanted);
    return Error{"the node at " + wire::without_key(address) +
                 " gave an answer to another question"};
  }

 private:
  class Inbox;
  explicit ClusterClient(std::unique_ptr<Inbox> inbox);
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace starling::actor
