/// A client of a cluster: sends requests to nodes, such as to submit a job or to read its model,
/// and waits for the replies.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/security/endpoint.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

/// Not thread-safe. Its functions block.
class ClusterClient {
 public:
  /// Opens an endpoint, at which the client listens for replies.
  static Result<std::unique_ptr<ClusterClient>> open(security::EndpointOptions network);
  ~ClusterClient();

  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;

  /// Sends a request to the node at `address`, as wire::print writes it, and repeats the request
  /// until the node answers. Returns an Error if the node refuses, or does not answer within
  /// `timeout`.
  [[nodiscard]] Result<wire::ReplyBody> ask(const std::string& address,
                                            const wire::RequestBody& body,
                                            std::chrono::milliseconds timeout);
  /// Sends a request to all `addresses` at once. Returns the reply of each node, which may be a
  /// wire::Refused, in the order of `addresses`; nullopt for a node that does not answer within
  /// `timeout`.
  [[nodiscard]] std::vector<std::optional<wire::ReplyBody>> ask_all(
      const std::vector<std::string>& addresses, const wire::RequestBody& body,
      std::chrono::milliseconds timeout);
  /// As ask_all(), but waits for at most `grace` once a node has answered, so that nodes that do
  /// not answer do not delay the replies of the others. If the next call of this function has the
  /// address of such a node, it sends no new request there, and returns the late reply to this one;
  /// otherwise the late reply is dropped. So all calls of this function must have the same `body`.
  [[nodiscard]] std::vector<std::optional<wire::ReplyBody>> poll_all(
      const std::vector<std::string>& addresses, const wire::RequestBody& body,
      std::chrono::milliseconds timeout, std::chrono::milliseconds grace);
  /// Returns an Error if the client's certificate is not valid now: no node answers then.
  [[nodiscard]] Result<void> check_certificate() const;
  struct TimedReply {
    wire::ReplyBody body;
    /// The node has made the reply between these two times.
    std::chrono::steady_clock::time_point asked_at;
    std::chrono::steady_clock::time_point received_at;
  };
  /// As ask_all(), but with a request of its own for each address, and once a node has answered,
  /// waits for at most `grace` for the others.
  [[nodiscard]] std::vector<std::optional<TimedReply>> ask_each(
      const std::vector<std::pair<std::string, wire::RequestBody>>& requests,
      std::chrono::milliseconds timeout, std::chrono::milliseconds grace);
  /// As ask(), for a request whose reply is an R.
  template <class R>
  [[nodiscard]] Result<R> ask_for(const std::string& address, const wire::RequestBody& body,
                                  std::chrono::milliseconds timeout) {
    auto reply = ask(address, body, timeout);
    if (!reply) return std::move(reply).error();
    if (auto* wanted = std::get_if<R>(&*reply)) return std::move(*wanted);
    return Error{"the node at " + wire::without_key(address) +
                 " sent a reply that does not match the request"};
  }

 private:
  class Impl;
  explicit ClusterClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::actor
