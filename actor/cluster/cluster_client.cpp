#include "starling/actor/cluster/cluster_client.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>

#include "starling/base/text.hpp"

namespace starling::actor {

using namespace std::chrono_literals;

class ClusterClient::Impl {
 public:
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  /// Sends Disconnect to all nodes that were asked, because otherwise they would try to reach this
  /// client long after it has ended.
  ~Impl() {
    for (const std::string& address : contacted_) send(address, ++number_, wire::Disconnect{});
  }

  Result<void> open(security::EndpointOptions network) {
    auto endpoint = security::Endpoint::open(
        std::move(network), [this](const wire::FrameView& frame, const security::Sender& sender) {
          receive(frame, sender);
        });
    if (!endpoint) return std::move(endpoint).error();
    endpoint_ = *std::move(endpoint);
    return {};
  }

  std::vector<std::optional<wire::ReplyBody>> ask_all(const std::vector<std::string>& addresses,
                                                      const wire::RequestBody& body,
                                                      std::chrono::milliseconds timeout) {
    std::unique_lock lock{mutex_};
    for (const std::string& address : addresses) add_request(address, body);
    await_replies(lock, timeout, timeout);
    std::vector<std::optional<wire::ReplyBody>> replies;
    for (PendingRequest& request : pending_) replies.push_back(std::move(request.reply));
    pending_.clear();
    return replies;
  }

  std::vector<std::optional<wire::ReplyBody>> poll_all(const std::vector<std::string>& addresses,
                                                       const wire::RequestBody& body,
                                                       std::chrono::milliseconds timeout,
                                                       std::chrono::milliseconds grace) {
    std::unique_lock lock{mutex_};
    for (const std::string& address : addresses) {
      const auto earlier = std::ranges::find(unanswered_, address, &PendingRequest::address);
      if (earlier == unanswered_.end())
        add_request(address, body);
      else
        pending_.push_back(std::move(*earlier));
    }
    unanswered_.clear();
    await_replies(lock, timeout, grace);
    std::vector<std::optional<wire::ReplyBody>> replies;
    for (PendingRequest& request : pending_) {
      replies.push_back(std::move(request.reply));
      if (!replies.back()) unanswered_.push_back(std::move(request));
    }
    pending_.clear();
    return replies;
  }

  std::vector<std::optional<TimedReply>> ask_each(
      const std::vector<std::pair<std::string, wire::RequestBody>>& requests,
      std::chrono::milliseconds timeout, std::chrono::milliseconds grace) {
    std::unique_lock lock{mutex_};
    for (const auto& [address, body] : requests) add_request(address, body);
    await_replies(lock, timeout, grace);
    std::vector<std::optional<TimedReply>> replies;
    for (PendingRequest& request : pending_) {
      replies.emplace_back();
      if (request.reply)
        replies.back() = {*std::move(request.reply), request.first_sent_at, request.received_at};
    }
    pending_.clear();
    return replies;
  }

  Result<void> check_certificate() const { return endpoint_->check_certificate(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct PendingRequest {
    std::uint64_t number = 0;
    std::string address;
    wire::RequestBody body;
    std::optional<wire::ReplyBody> reply = {};
    /// When the request was sent first and last, and when the reply came.
    Clock::time_point first_sent_at{};
    Clock::time_point sent_at{};
    Clock::time_point received_at{};
  };

  void add_request(const std::string& address, const wire::RequestBody& body) {
    pending_.push_back({++number_, address, body});
  }

  /// Sends the pending requests, and repeats each that gets no reply for 500 ms, or for 5 s if
  /// takes_long() is true of it. Returns when all have a reply, `timeout` after the call, or
  /// `grace` after the first reply, whichever comes first. Requires: `lock` holds mutex_.
  void await_replies(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout,
                     std::chrono::milliseconds grace) {
    for (const PendingRequest& request : pending_) contacted_.insert(request.address);
    const auto has_answered = [](const PendingRequest& request) {
      return request.reply.has_value();
    };
    auto deadline = Clock::now() + timeout;
    bool is_grace = false;
    while (Clock::now() < deadline && !std::ranges::all_of(pending_, has_answered)) {
      if (!is_grace && std::ranges::any_of(pending_, has_answered)) {
        is_grace = true;
        deadline = std::min(deadline, Clock::now() + grace);
      }
      auto wait_end = deadline;
      for (PendingRequest& request : pending_) {
        if (request.reply) continue;
        const std::chrono::milliseconds resend_after = takes_long(request.body) ? 5'000ms : 500ms;
        if (Clock::now() >= request.sent_at + resend_after) {
          request.sent_at = Clock::now();
          if (request.first_sent_at == Clock::time_point{}) request.first_sent_at = request.sent_at;
          send(request.address, request.number, request.body);
        }
        wait_end = std::min(wait_end, request.sent_at + resend_after);
      }
      reply_received_.wait_until(lock, wait_end);
    }
  }

  /// True if the request or its reply may be large, or if the reply may wait for a computation: the
  /// reply must have time to arrive before the request is repeated.
  static bool takes_long(const wire::RequestBody& request) {
    return std::holds_alternative<wire::ReadRanges>(request) ||
           std::holds_alternative<wire::GetResult>(request) ||
           std::holds_alternative<wire::GetJobNotes>(request) ||
           std::holds_alternative<wire::EvaluateModel>(request);
  }

  /// Returns the request with this number; nullptr if there is none.
  PendingRequest* find(std::uint64_t number) {
    for (auto* requests : {&pending_, &unanswered_}) {
      const auto request = std::ranges::find(*requests, number, &PendingRequest::number);
      if (request != requests->end()) return &*request;
    }
    return nullptr;
  }

  void send(const std::string& address, std::uint64_t number, const wire::RequestBody& body) {
    endpoint_->send(
        address, wire::TrafficClass::control,
        wire::encode(wire::ControlMessage{0, endpoint_->address(), wire::Request{number, body}}));
  }

  void receive(const wire::FrameView& frame, const security::Sender& sender) {
    if (sender.role != security::Role::node) return;
    auto message = wire::decode_control(frame);
    if (!message) return;
    auto* reply = std::get_if<wire::Reply>(&message->body);
    if (reply == nullptr) return;
    const std::lock_guard lock{mutex_};
    PendingRequest* request = find(reply->number);
    if (request == nullptr || !sender.may_use_address(request->address)) return;
    request->reply = std::move(reply->body);
    request->received_at = Clock::now();
    reply_received_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable reply_received_;
  /// The number of the latest request. Numbers begin at random, because another client may have
  /// this client's address later. That client must not take a late reply to a request of this
  /// client for a reply to its own request.
  std::uint64_t number_ = std::uint64_t{std::random_device{}()} << 32U;
  /// The requests of the current call of ask_all(), poll_all() or ask_each().
  std::vector<PendingRequest> pending_;
  /// The requests that the last call of poll_all() has left without a reply.
  std::vector<PendingRequest> unanswered_;
  /// The addresses of all nodes that were asked so far.
  std::set<std::string> contacted_;
  std::unique_ptr<security::Endpoint> endpoint_;
};

Result<std::unique_ptr<ClusterClient>> ClusterClient::open(security::EndpointOptions network) {
  auto impl = std::make_unique<Impl>();
  if (auto opened = impl->open(std::move(network)); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterClient>{new ClusterClient{std::move(impl)}};
}

ClusterClient::ClusterClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterClient::~ClusterClient() = default;

std::vector<std::optional<wire::ReplyBody>> ClusterClient::ask_all(
    const std::vector<std::string>& addresses, const wire::RequestBody& body,
    std::chrono::milliseconds timeout) {
  return impl_->ask_all(addresses, body, timeout);
}

std::vector<std::optional<wire::ReplyBody>> ClusterClient::poll_all(
    const std::vector<std::string>& addresses, const wire::RequestBody& body,
    std::chrono::milliseconds timeout, std::chrono::milliseconds grace) {
  return impl_->poll_all(addresses, body, timeout, grace);
}

std::vector<std::optional<ClusterClient::TimedReply>> ClusterClient::ask_each(
    const std::vector<std::pair<std::string, wire::RequestBody>>& requests,
    std::chrono::milliseconds timeout, std::chrono::milliseconds grace) {
  return impl_->ask_each(requests, timeout, grace);
}

Result<void> ClusterClient::check_certificate() const { return impl_->check_certificate(); }

Result<wire::ReplyBody> ClusterClient::ask(const std::string& address,
                                           const wire::RequestBody& body,
                                           std::chrono::milliseconds timeout) {
  auto reply = std::move(impl_->ask_all({address}, body, timeout).front());
  if (!reply) return Error{"no answer from " + wire::without_key(address)};
  if (const auto* refused = std::get_if<wire::Refused>(&*reply))
    return Error{printable(refused->why)};
  return *std::move(reply);
}

}  // namespace starling::actor
