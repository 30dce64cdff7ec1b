#include "starling/engine/live/cluster_client.hpp"

#include <condition_variable>
#include <mutex>
#include <random>

#include "starling/actor/wire/transport.hpp"

namespace starling::live {

using namespace std::chrono_literals;

class ClusterClient::Inbox {
 public:
  Result<void> open(const std::string& listen) {
    wire::TransportOptions options;
    options.listen = listen;
    auto transport =
        wire::Transport::open(options, [this](const wire::Incoming& incoming) { take(incoming); });
    if (!transport) return std::move(transport).error();
    transport_ = *std::move(transport);
    return {};
  }

  Result<wire::ReplyBody> ask(const std::string& address, wire::RequestBody body,
                              std::chrono::milliseconds within) {
    const auto give_up = std::chrono::steady_clock::now() + within;
    const wire::ControlMessage message{0, transport_->address(),
                                       wire::Request{++number_, std::move(body)}};
    std::unique_lock lock{mutex_};
    awaited_ = number_;
    reply_.reset();
    while (!reply_ && std::chrono::steady_clock::now() < give_up) {
      transport_->send({address, std::nullopt}, wire::Lane::control, wire::encode(message));
      came_.wait_for(lock, 500ms, [&] { return reply_.has_value(); });
    }
    awaited_ = 0;
    if (!reply_) return Error{"no answer from " + address};
    if (const auto* refused = std::get_if<wire::Refused>(&*reply_)) return Error{refused->why};
    return *std::move(reply_);
  }

 private:
  void take(const wire::Incoming& incoming) {
    auto message = wire::decode_control(incoming.frame);
    if (!message) return;
    auto* reply = std::get_if<wire::Reply>(&message->body);
    if (reply == nullptr) return;
    const std::lock_guard lock{mutex_};
    if (reply->number != awaited_) return;
    reply_ = std::move(reply->body);
    came_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable came_;
  /// Others may listen at an address that was this client's.
  std::uint64_t number_ = std::uint64_t{std::random_device{}()} << 32U;
  std::uint64_t awaited_ = 0;
  std::optional<wire::ReplyBody> reply_;
  std::unique_ptr<wire::Transport> transport_;
};

Result<std::unique_ptr<ClusterClient>> ClusterClient::open(const std::string& listen) {
  auto inbox = std::make_unique<Inbox>();
  if (auto opened = inbox->open(listen); !opened) return std::move(opened).error();
  return std::unique_ptr<ClusterClient>{new ClusterClient{std::move(inbox)}};
}

ClusterClient::ClusterClient(std::unique_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}
ClusterClient::~ClusterClient() = default;

Result<wire::ReplyBody> ClusterClient::ask(const std::string& address, wire::RequestBody body,
                                           std::chrono::milliseconds within) {
  return inbox_->ask(address, std::move(body), within);
}

}  // namespace starling::live
