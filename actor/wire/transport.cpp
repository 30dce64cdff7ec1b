#include "starling/actor/wire/transport.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <zmq.hpp>

#include "starling/actor/outbound_guard.hpp"
#include "starling/actor/thread_priority.hpp"
#include "starling/actor/wake.hpp"
#include "starling/actor/wire/fabric_links.hpp"
#include "starling/actor/wire/inbox.hpp"
#include "starling/actor/wire/outbound_connection.hpp"
#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/shared_bodies.hpp"
#include "starling/actor/wire/transport_parts.hpp"

namespace starling::wire {
namespace {

/// A body of this many bytes or more takes the receiver long to handle.
constexpr std::size_t long_body_bytes_min = std::size_t{64} << 10U;
/// ZeroMQ may go on sending for this long after the transport's end.
constexpr std::chrono::milliseconds linger_time{50};
/// The most bytes of frames that wait for the transport's thread. Further frames are dropped.
constexpr std::size_t command_bytes_max = std::size_t{256} << 20U;
/// The most frames that are received before waiting frames are sent.
constexpr std::size_t receive_burst_max = 64;
using Clock = std::chrono::steady_clock;

}  // namespace

class Transport::Impl {
 public:
  Impl(const TransportOptions& options, Receiver receiver)
      : options_(options), receiver_(std::move(receiver)) {
    context_.set(zmq::ctxopt::max_sockets, static_cast<int>(3 * options.peers_max + 16));
  }

  ~Impl() {
    stopping_ = true;
    wake_->notify();
    if (thread_.joinable()) thread_.join();
    for (auto& [peer, connections] : peers_)
      for (auto& outbound : connections.by_class)
        if (outbound) outbound->linger_for(linger_time);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Starts the transport's thread.
  Result<void> listen() {
    using namespace zmq::sockopt;
    if (wake_->descriptor() < 0)
      return Error{std::string{"cannot listen at "} + options_.listen + ": " +
                   std::strerror(errno)};
    auto inbox = Inbox::open(inbox_options(options_));
    if (!inbox)
      return Error{"cannot listen at " + options_.listen + ": " + inbox.error().message +
                   "; valid: tcp://HOST:PORT with an address of this machine and a free port"};
    inbox_ = *std::move(inbox);
    if (options_.fabric.provider) {
      auto fabric = FabricLinks::open(options_, inbox_->address(), mutex_,
                                      [wake = wake_] { wake->notify(); });
      if (!fabric) return std::move(fabric).error();
      fabric_ = *std::move(fabric);
    }
    // Blocks signals in the new thread, because a signal would end its poll() with an error.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    thread_ = std::thread{[this] { run(); }};
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return {};
  }

  /// Sends in the caller's thread if no other frames wait to be sent before these, because waking
  /// the transport's thread costs more than everything else that is done for a small frame.
  void send(const Peer& peer, TrafficClass traffic_class, std::span<Frame> frames) {
    const std::lock_guard lock{mutex_};
    const bool is_own_thread = transport_of_this_thread == this;
    OutboundConnection* connection =
        is_own_thread || !commands_.empty() ? nullptr : find_connection(peer, traffic_class);
    if (connection == nullptr || connection->is_waiting()) {
      if (!is_own_thread && commands_.empty()) wake_->notify();
      for (Frame& frame : frames) {
        const std::size_t bytes = frame.head.size() + frame.body_size();
        if (command_bytes_ + bytes > command_bytes_max) {
          ++dropped_;
          continue;
        }
        command_bytes_ += bytes;
        commands_.push_back(SendCommand{peer, traffic_class, std::move(frame)});
      }
      return;
    }
    for (Frame& frame : frames) add(*connection, std::move(frame));
    flush(*connection);
    if (connection->is_waiting() || (fabric_ && fabric_->writers().has_frames())) wake_->notify();
  }
  void forget(Peer peer) {
    const std::lock_guard lock{mutex_};
    if (commands_.empty()) wake_->notify();
    commands_.push_back(ForgetCommand{std::move(peer)});
  }

  [[nodiscard]] const std::string& address() const noexcept { return inbox_->address(); }
  [[nodiscard]] TransportCounts counts() const {
    return {sent_,
            received_,
            dropped_,
            refused_,
            fabric_ ? fabric_->writers().written() : 0,
            fabric_ ? fabric_->read_count() : 0};
  }

 private:
  /// Returns nullptr if there is no connection yet. Requires: the caller holds the lock. All
  /// functions below require this, except run(), receive() and functions that these two call
  /// without the lock.
  OutboundConnection* find_connection(const Peer& peer, TrafficClass traffic_class) {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return nullptr;
    found->second.last_used_at = Clock::now();
    return found->second.by_class.at(static_cast<std::size_t>(traffic_class)).get();
  }

  void add(OutboundConnection& connection, Frame&& frame) {
    try {
      ++(connection.add(std::move(frame)) ? sent_ : dropped_);
    } catch (const std::exception&) {
      ++dropped_;  // no memory or no connection: the frame is lost, as with a broken connection
    }
  }

  void run() {
    transport_of_this_thread = this;
    set_priority(ThreadPriority::network);  // ZeroMQ's threads, which this one starts, inherit it
    // Polls the descriptors of ZeroMQ's sockets: zmq_poll() would make more system calls.
    std::vector<pollfd> items;
    std::vector<OutboundConnection*> waiting;
    for (bool has_more = true; !stopping_;) {
      items.assign({{inbox_->descriptor(), POLLIN, 0}, {wake_->descriptor(), POLLIN, 0}});
      waiting.clear();
      auto timeout = std::min(options_.idle_max, inbox_->maintain());
      {
        const std::lock_guard lock{mutex_};
        if (!peers_.empty()) timeout = std::min(timeout, close_flooded());
        // Polls the connections that have waiting frames. Only this thread sends on these.
        for (auto& [peer, connections] : peers_)
          for (auto& outbound : connections.by_class)
            if (outbound && outbound->is_waiting()) {
              waiting.push_back(outbound.get());
              items.push_back({outbound->descriptor(), POLLIN, 0});
            }
      }
      if (has_more) timeout = {};
      (void)::poll(items.data(), items.size(), static_cast<int>(timeout.count()));
      if (items[1].revents != 0) wake_->clear();
      {
        const std::lock_guard lock{mutex_};
        for (OutboundConnection* connection : waiting) flush(*connection);
        execute_commands();
        close_idle();
      }
      if (has_more || items[0].revents != 0) has_more = receive();
      if (fabric_) send_fabric_frames();
      refused_ = frames_refused_ + outbound_refused_ + inbox_->refused();
    }
  }

  /// Closes outbound connections on which peers send more than the answers of a handshake. Returns
  /// the time until the next check.
  std::chrono::milliseconds close_flooded() {
    outbound_refused_ += guard_.check([this](const std::string& address) {
      return std::ranges::any_of(peers_,
                                 [&](const auto& peer) { return peer.first.address == address; });
    });
    return OutboundGuard::check_every;
  }

  /// Sends the frames that the receiver has passed to send() in this thread.
  void send_answers() {
    const std::lock_guard lock{mutex_};
    execute_commands();
  }

  void execute_commands() {
    for (Command& command : commands_) std::visit([this](auto& c) { execute(c); }, command);
    commands_.clear();
    command_bytes_ = 0;
    flush_added();
  }

  /// Sends the frames that commands have added. Called before a connection may be closed.
  void flush_added() {
    for (OutboundConnection* connection : unflushed_) flush(*connection);
    unflushed_.clear();
  }

  void flush(OutboundConnection& connection) {
    try {
      connection.flush();
    } catch (const std::exception&) {
      ++dropped_;  // no memory or no connection; frames that wait may be sent later
    }
  }

  void execute(SendCommand& command) {
    const bool has_keys = command.traffic_class == TrafficClass::handshake
                              ? options_.handshake_keys.has_value()
                              : options_.keys.has_value();
    if (has_keys != command.peer.key.has_value()) {
      ++dropped_;
      return;
    }
    PeerConnections& connections = connections_to(command.peer);
    auto& outbound = connections.by_class.at(static_cast<std::size_t>(command.traffic_class));
    try {
      if (!outbound)
        outbound = std::make_unique<OutboundConnection>(context_, command.peer, options_,
                                                        command.traffic_class,
                                                        fabric_ ? &fabric_->writers() : nullptr);
    } catch (const zmq::error_t&) {
      ++dropped_;  // an invalid address, or no more sockets: treated like an unreachable peer
      return;
    }
    add(*outbound, std::move(command.frame));
    if (unflushed_.empty() || unflushed_.back() != outbound.get())
      unflushed_.push_back(outbound.get());
  }
  void execute(const ForgetCommand& command) {
    flush_added();
    peers_.erase(command.peer);
    if (fabric_) fabric_->writers().forget(command.peer);
  }

  PeerConnections& connections_to(const Peer& peer) {
    auto found = peers_.find(peer);
    if (found == peers_.end()) {
      if (peers_.size() >= options_.peers_max) close_least_recently_used();
      found = peers_.try_emplace(peer).first;
    }
    found->second.last_used_at = Clock::now();
    return found->second;
  }

  void close_least_recently_used() {
    flush_added();
    peers_.erase(std::ranges::min_element(
        peers_, {}, [](const auto& peer) { return peer.second.last_used_at; }));
  }

  void close_idle() {
    const auto now = Clock::now();
    if (now < next_idle_check_at_) return;
    next_idle_check_at_ = now + options_.idle_max / 2;
    for (auto& [peer, connections] : peers_)
      for (auto& outbound : connections.by_class)
        if (outbound && now - outbound->last_used_at() > options_.idle_max) outbound.reset();
    std::erase_if(peers_, [](const auto& peer) {
      return std::ranges::none_of(peer.second.by_class,
                                  [](const auto& outbound) { return outbound != nullptr; });
    });
  }

  /// Receives frames; returns false if no more are waiting.
  bool receive() {
    std::size_t received = 0;
    for (auto next = inbox_->next(); next;) {
      InboundMessage message = *std::move(next);
      const bool is_small =
          message.body.filled().size() < long_body_bytes_min && !read_ticket(message.head.filled());
      // Ends at the limit before it takes another message, which it would have to deliver.
      next = received < receive_burst_max ? inbox_->next() : std::nullopt;
      received += message.is_valid ? deliver(message, is_small || !next) : 1;
      // Answers to small messages are sent together, which saves ZeroMQ's thread most of its calls.
      if (!next || !is_small) send_answers();
    }
    return received >= receive_burst_max;
  }

  /// Passes the frames of a message to the receiver. Returns their number, but at least 1, because
  /// every message takes time.
  std::size_t deliver(InboundMessage& received, bool may_handle_inline) {
    IncomingFrame incoming{{received.head.filled(), received.body.filled(), may_handle_inline},
                           received.key};
    // The key was admitted when the connection was made, and may have been revoked since.
    if (incoming.key && !(options_.admits && options_.admits(*incoming.key))) {
      ++frames_refused_;
      return 1;
    }
    if (const auto ticket = read_ticket(incoming.frame.head)) {
      if (!fabric_ || !fabric_->take(*ticket, incoming)) {
        ++frames_refused_;
        return 1;
      }
    } else {
      shared_bodies_.keep_alive(received.body, incoming.frame);
    }
    auto pack = PackReader::open(incoming.frame.head, incoming.frame.body);
    if (!pack) {
      pass(incoming);
      return 1;
    }
    std::size_t count = 0;
    for (; const auto frame = pack->next(); ++count) {
      incoming.frame.head = frame->head;
      incoming.frame.body = frame->body;
      pass(incoming);
    }
    return std::max<std::size_t>(count, 1);
  }

  /// Passes a frame to the receiver, or to the fabric if it is a message of the fabric.
  void pass(const IncomingFrame& incoming) {
    ++received_;
    if (!is_fabric_frame(incoming.frame.head)) return receiver_(incoming);
    if (fabric_) fabric_->receive(incoming);
  }

  void send_fabric_frames() {
    const std::lock_guard lock{mutex_};
    auto frames = fabric_->take_frames();
    for (auto& [peer, frame] : frames)
      commands_.push_back(SendCommand{std::move(peer), TrafficClass::control, std::move(frame)});
    if (!frames.empty()) execute_commands();
  }

  const TransportOptions options_;
  const Receiver receiver_;
  zmq::context_t context_;
  /// Set by listen(). Afterwards only the transport's thread uses it, except for its address.
  std::unique_ptr<Inbox> inbox_;
  std::uint64_t frames_refused_ = 0;
  OutboundGuard guard_;
  std::uint64_t outbound_refused_ = 0;
  const std::shared_ptr<Wake> wake_ = std::make_shared<Wake>();
  std::atomic<bool> stopping_ = false;

  /// The transport whose thread this is; null on all other threads.
  static inline thread_local const Impl* transport_of_this_thread = nullptr;

  std::mutex mutex_;
  std::vector<Command> commands_;
  std::size_t command_bytes_ = 0;
  /// The connections to which commands have added frames that are not sent yet.
  std::vector<OutboundConnection*> unflushed_;
  /// Only the transport's thread adds and removes connections.
  std::unordered_map<Peer, PeerConnections, PeerHash> peers_;
  Clock::time_point next_idle_check_at_{};
  const SharedBodies shared_bodies_;
  /// Null without one-sided writes.
  std::unique_ptr<FabricLinks> fabric_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::thread thread_;
};

Result<std::unique_ptr<Transport>> Transport::open(const TransportOptions& options,
                                                   Receiver receiver) {
  auto impl = std::make_unique<Impl>(options, std::move(receiver));
  if (auto listening = impl->listen(); !listening) return std::move(listening).error();
  return std::unique_ptr<Transport>{new Transport{std::move(impl)}};
}

Transport::Transport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transport::~Transport() = default;

const std::string& Transport::address() const noexcept { return impl_->address(); }
void Transport::send(const Peer& to, TrafficClass traffic_class, std::span<Frame> frames) {
  impl_->send(to, traffic_class, frames);
}
void Transport::forget(const Peer& peer) { impl_->forget(peer); }
TransportCounts Transport::counts() const { return impl_->counts(); }

}  // namespace starling::wire
