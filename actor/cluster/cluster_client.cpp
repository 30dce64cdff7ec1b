#include "starling/actor/cluster/cluster_client.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>

#include "starling/base/text.hpp"

namespace starling::actor {

using namespace std::chrono_literals;

class ClusterClient::Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  /// Sends a farewell: else the nodes that were asked would try to reach this client until it has
  /// been silent for long.
  ~Inbox() {
    for (const std::string& address : all_asked_) send(address, ++number_, wire::Disconnect{});
  }

  Result<void> open(security::EndpointOptions network) {
    auto endpoint = security::Endpoint::open(
        std::move(network), [this](const wire::FrameView& frame, const security::Sender& sender) {
          take(frame, sender);
        });
    if (!endpoint) return std::move(endpoint).error();
    endpoint_ = *std::move(endpoint);
    return {};
  }

  std::vector<std::optional<wire::ReplyBody>> ask_all(const std::vector<std::string>& addresses,
                                                      const wire::RequestBody& body,
                                                      std::chrono::milliseconds timeout) {
    // A request whose reply takes long is not repeated before the reply can have come.
    const std::chrono::milliseconds again_after =
        std::holds_alternative<wire::ReadRanges>(body) ? 5'000ms : 500ms;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock{mutex_};
    for (const std::string& address : addresses) questions_.push_back({++number_, address, {}});
    all_asked_.insert(addresses.begin(), addresses.end());
    const auto is_answered = [](const Question& question) { return question.reply.has_value(); };
    const auto all_are = [&] { return std::ranges::all_of(questions_, is_answered); };
    while (!all_are() && std::chrono::steady_clock::now() < deadline) {
      for (const Question& question : questions_)
        if (!question.reply) send(question.address, question.number, body);
      const auto until = std::min(std::chrono::steady_clock::now() + again_after, deadline);
      came_.wait_until(lock, until, all_are);
    }
    std::vector<std::optional<wire::ReplyBody>> replies;
    for (Question& question : questions_) replies.push_back(std::move(question.reply));
    questions_.clear();
    return replies;
  }

 private:
  struct Question {
    std::uint64_t number = 0;
    std::string address;
    std::optional<wire::ReplyBody> reply;
  };

  void send(const std::string& address, std::uint64_t number, const wire::RequestBody& body) {
    endpoint_->send(
        address, wire::TrafficClass::control,
        wire::encode(wire::ControlMessage{0, endpoint_->address(), wire::Request{number, body}}));
  }

  void take(const wire::FrameView& frame, const security::Sender& sender) {
    if (sender.role != security::Role::node) return;
    auto message = wire::decode_control(frame);
    if (!message) return;
    auto* reply = std::get_if<wire::Reply>(&message->body);
    if (reply == nullptr) return;
    const std::lock_guard lock{mutex_};
    const auto asked = std::ranges::find(questions_, reply->number, &Question::number);
    if (asked == questions_.end() || !sender.may_be_at(asked->address)) return;
    asked->reply = std::move(reply->body);
    came_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable came_;
  /// The number of the latest request. It begins at random, since another client may use this one's
  /// address later.
  std::uint64_t number_ = std::uint64_t{std::random_device{}()} << 32U;
  /// Requests that wait for their replies.
  std::vector<Question> questions_;
  std::set<std::string> all_asked_;
  std::unique_ptr<security::Endpoint> endpoint_;
};

Result<std::unique_ptr<ClusterClient>> ClusterClient::open(security::EndpointOptions network) {
  auto inbox = std::make_unique<Inbox>();
  if (auto opened = inbox->open(std::move(network)); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterClient>{new ClusterClient{std::move(inbox)}};
}

ClusterClient::ClusterClient(std::unique_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}
ClusterClient::~ClusterClient() = default;

std::vector<std::optional<wire::ReplyBody>> ClusterClient::ask_all(
    const std::vector<std::string>& addresses, const wire::RequestBody& body,
    std::chrono::milliseconds timeout) {
  return inbox_->ask_all(addresses, body, timeout);
}

Result<wire::ReplyBody> ClusterClient::ask(const std::string& address,
                                           const wire::RequestBody& body,
                                           std::chrono::milliseconds timeout) {
  auto reply = std::move(inbox_->ask_all({address}, body, timeout).front());
  if (!reply) return Error{"no answer from " + wire::place_of(address)};
  if (const auto* refused = std::get_if<wire::Refused>(&*reply))
    return Error{printable(refused->why)};
  return *std::move(reply);
}

}  // namespace starling::actor
