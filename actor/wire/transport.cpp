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
#include <variant>
#include <zmq.hpp>

#include "starling/actor/wire/inbox.hpp"
#include "starling/actor/wire/listener.hpp"
#include "starling/actor/wire/outbound_connection.hpp"
#include "starling/actor/wire/outbound_guard.hpp"
#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/wake.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::wire {
namespace {

/// The most bytes of bodies that stay in the buffers in which they were received, which spares a
/// copy. Beyond this, copies in reused blocks are better.
constexpr std::size_t shared_bytes_max = std::size_t{2} << 20U;
/// A body of this many bytes or more takes the receiving thread long to hand on.
constexpr std::size_t small_bytes = std::size_t{64} << 10U;
/// How long frames that were sent just before the transport ended have to leave.
constexpr std::chrono::milliseconds linger_time{50};
/// The most bytes of frames that wait for the transport's thread; more are dropped.
constexpr std::size_t ordered_bytes_max = std::size_t{256} << 20U;
/// The most connections that others have made and whose handshake is not complete.
constexpr std::size_t handshakes_max = 1024;
/// The number of frames that are received before waiting frames are sent.
constexpr std::size_t receive_burst = 64;
using Clock = std::chrono::steady_clock;

}  // namespace

class Transport::Thread {
 public:
  Thread(const TransportOptions& options, Receiver receiver)
      : options_(options), receiver_(std::move(receiver)) {
    context_.set(zmq::ctxopt::max_sockets, static_cast<int>(3 * options.peers_max + 16));
  }

  ~Thread() {
    stopping_ = true;
    wake_.ring();
    if (thread_.joinable()) thread_.join();
    for (auto& [peer, connection] : connections_)
      for (auto& outbound : connection.by_class)
        if (outbound) outbound->linger_for(linger_time);
  }

  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  Result<void> listen() {
    using namespace zmq::sockopt;
    if (wake_.descriptor() < 0)
      return Error{std::string{"cannot listen at "} + options_.listen + ": " +
                   std::strerror(errno)};
    auto inbox = Inbox::open(inbox_options(options_));
    if (!inbox)
      return Error{"cannot listen at " + options_.listen + ": " + inbox.error().message +
                   "; valid: tcp://HOST:PORT with an address of this machine and a free port"};
    inbox_ = *std::move(inbox);
    // Signals are for the program's own threads: here one would end a wait with an error.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread{[this] { run(); }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  /// Sends in the caller's thread if no frames wait before these: waking a thread costs more than
  /// everything else that is done for a small frame.
  void order(const Peer& peer, TrafficClass traffic_class, std::span<Frame> frames) {
    const std::lock_guard lock{mutex_};
    const bool is_here = receives_here == this;
    OutboundConnection* connection =
        is_here || !orders_.empty() ? nullptr : connection_to(peer, traffic_class);
    if (connection == nullptr || connection->is_waiting()) {
      if (!is_here && orders_.empty()) wake_.ring();
      for (Frame& frame : frames) {
        const std::size_t bytes = frame.head.size() + frame.body_size();
        if (ordered_bytes_ + bytes > ordered_bytes_max) {
          ++dropped_;
          continue;
        }
        ordered_bytes_ += bytes;
        orders_.push_back(Sending{peer, traffic_class, std::move(frame)});
      }
      return;
    }
    for (Frame& frame : frames) add(*connection, std::move(frame));
    flush(*connection);
    if (connection->is_waiting()) wake_.ring();
  }
  void order_to_forget(Peer peer) {
    const std::lock_guard lock{mutex_};
    if (orders_.empty()) wake_.ring();
    orders_.push_back(Forgetting{std::move(peer)});
  }

  [[nodiscard]] const std::string& address() const noexcept { return inbox_->address(); }
  [[nodiscard]] TransportCounts counts() const { return {sent_, received_, dropped_, refused_}; }

 private:
  static InboxOptions inbox_options(const TransportOptions& options) {
    const std::size_t descriptors = descriptors_max();
    InboxOptions inbox;
    inbox.listen = options.listen;
    if (options.keys) inbox.rules.secret_key = options.keys->secret_key;
    inbox.rules.admits = options.admits;
    inbox.rules.part_bytes_max = options.part_bytes_max;
    inbox.unfinished_bytes_max = options.unfinished_bytes_max;
    inbox.open_max = std::min(options.inbound_max, descriptors / 2);
    inbox.handshakes_max = std::clamp<std::size_t>(descriptors / 4, 1, handshakes_max);
    return inbox;
  }

  struct Sending {
    Peer peer;
    TrafficClass traffic_class;
    Frame frame;
  };
  struct Forgetting {
    Peer peer;
  };
  using Order = std::variant<Sending, Forgetting>;

  struct Connection {
    std::array<std::unique_ptr<OutboundConnection>, 3> by_class;
    Clock::time_point used;
  };

  /// Returns nullptr if there is no connection yet. Requires: the lock is held, as for all
  /// functions that follow except run() and receive().
  OutboundConnection* connection_to(const Peer& peer, TrafficClass traffic_class) {
    const auto found = connections_.find(peer);
    if (found == connections_.end()) return nullptr;
    found->second.used = Clock::now();
    return found->second.by_class.at(static_cast<std::size_t>(traffic_class)).get();
  }

  void add(OutboundConnection& connection, Frame&& frame) {
    try {
      ++(connection.add(std::move(frame)) ? sent_ : dropped_);
    } catch (const std::exception&) {
      ++dropped_;  // no memory or no connection: lost, as with a broken connection
    }
  }

  void run() {
    receives_here = this;
    // A ZeroMQ socket's descriptor is readable when there may be something new since all was taken.
    // zmq_poll() would make more system calls.
    std::vector<pollfd> items;
    std::vector<OutboundConnection*> waiting;
    for (bool has_more = true; !stopping_;) {
      items.assign({{inbox_->descriptor(), POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}});
      waiting.clear();
      auto patience = std::min(options_.idle_max, inbox_->tend());
      {
        const std::lock_guard lock{mutex_};
        if (!connections_.empty()) patience = std::min(patience, watch_answers());
        // This thread alone sends by connections where frames wait, and polls no others.
        for (auto& [peer, connection] : connections_)
          for (auto& outbound : connection.by_class)
            if (outbound && outbound->is_waiting()) {
              waiting.push_back(outbound.get());
              items.push_back({outbound->descriptor(), POLLIN, 0});
            }
      }
      if (has_more) patience = {};
      (void)::poll(items.data(), items.size(), static_cast<int>(patience.count()));
      if (items[1].revents != 0) wake_.clear();
      {
        const std::lock_guard lock{mutex_};
        for (OutboundConnection* connection : waiting) flush(*connection);
        carry_out_orders();
        close_idle();
      }
      if (has_more || items[0].revents != 0) has_more = receive();
      refused_ = frames_refused_ + outbound_refused_ + inbox_->refused();
    }
  }

  /// Looks at the bytes that peers send back by our connections. Returns the time until the next
  /// look.
  std::chrono::milliseconds watch_answers() {
    outbound_refused_ += guard_.look([this](const std::string& address) {
      return std::ranges::any_of(connections_, [&](const auto& connection) {
        return connection.first.address == address;
      });
    });
    return OutboundGuard::look_every;
  }

  void answer() {
    const std::lock_guard lock{mutex_};
    carry_out_orders();
  }

  void carry_out_orders() {
    for (Order& order : orders_) std::visit([this](auto& o) { execute(o); }, order);
    orders_.clear();
    ordered_bytes_ = 0;
    flush_filled();
  }

  /// Sends the frames that orders have added. Called before a connection may end.
  void flush_filled() {
    for (OutboundConnection* connection : filled_) flush(*connection);
    filled_.clear();
  }

  void flush(OutboundConnection& connection) {
    try {
      connection.flush();
    } catch (const std::exception&) {
      ++dropped_;  // no memory or no connection; frames that wait may be sent later
    }
  }

  void execute(Sending& sending) {
    const bool has_keys = sending.traffic_class == TrafficClass::handshake
                              ? options_.handshake_keys.has_value()
                              : options_.keys.has_value();
    if (has_keys != sending.peer.key.has_value()) {
      ++dropped_;
      return;
    }
    Connection& connection = connection_to(sending.peer);
    auto& outbound = connection.by_class.at(static_cast<std::size_t>(sending.traffic_class));
    try {
      if (!outbound)
        outbound = std::make_unique<OutboundConnection>(context_, sending.peer, options_,
                                                        sending.traffic_class);
    } catch (const zmq::error_t&) {
      ++dropped_;  // an invalid address, or no more sockets: treated like an absent peer
      return;
    }
    add(*outbound, std::move(sending.frame));
    if (filled_.empty() || filled_.back() != outbound.get()) filled_.push_back(outbound.get());
  }
  void execute(const Forgetting& forgetting) {
    flush_filled();
    connections_.erase(forgetting.peer);
  }

  Connection& connection_to(const Peer& peer) {
    auto found = connections_.find(peer);
    if (found == connections_.end()) {
      if (connections_.size() >= options_.peers_max) close_oldest();
      found = connections_.try_emplace(peer).first;
    }
    found->second.used = Clock::now();
    return found->second;
  }

  void close_oldest() {
    flush_filled();
    connections_.erase(
        std::ranges::min_element(connections_, {}, [](const auto& c) { return c.second.used; }));
  }

  void close_idle() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + options_.idle_max / 2;
    for (auto& [peer, connection] : connections_)
      for (auto& outbound : connection.by_class)
        if (outbound && now - outbound->last_used() > options_.idle_max) outbound.reset();
    std::erase_if(connections_, [](const auto& c) {
      return std::ranges::none_of(c.second.by_class,
                                  [](const auto& outbound) { return outbound != nullptr; });
    });
  }

  /// Receives frames; returns false if no more are waiting.
  bool receive() {
    std::size_t taken = 0;
    for (auto next = inbox_->next(); next;) {
      InboundMessage current = *std::move(next);
      const bool is_small = current.body.filled().size() < small_bytes;
      // Takes no message beyond the burst: one that is taken must be handed on.
      next = taken < receive_burst ? inbox_->next() : std::nullopt;
      taken += current.fits ? hand_on(current, is_small || !next) : 1;
      // Answers to small messages go together, which spares ZeroMQ's thread most of its calls.
      if (!next || !is_small) answer();
    }
    return taken >= receive_burst;
  }

  /// Hands on the frames of a message. Returns their number, but at least 1: any message takes
  /// time.
  std::size_t hand_on(InboundMessage& received, bool at_once) {
    Incoming incoming{{received.head.filled(), received.body.filled(), at_once}, received.key};
    // The key was admitted when the connection was made, and may have been revoked since.
    if (incoming.key && !(options_.admits && options_.admits(*incoming.key))) {
      ++frames_refused_;
      return 1;
    }
    share(received.body, incoming.frame);
    auto pack = PackReader::open(incoming.frame.head, incoming.frame.body);
    if (!pack) {
      ++received_;
      receiver_(incoming);
      return 1;
    }
    std::size_t count = 0;
    for (; const auto frame = pack->next(); ++count) {
      incoming.frame.head = frame->head;
      incoming.frame.body = frame->body;
      ++received_;
      receiver_(incoming);
    }
    return std::max<std::size_t>(count, 1);
  }

  /// Lets a long body outlive the call, unless `shared_bytes_max` forbids it.
  void share(PartBuffer& part, FrameView& frame) {
    const std::size_t bytes = part.filled().size();
    if (bytes < blocks::least || *shared_bytes_ + bytes > shared_bytes_max) return;
    *shared_bytes_ += bytes;
    const std::shared_ptr<const PartBuffer> body{new PartBuffer{std::move(part)},
                                                 [sum = shared_bytes_, bytes](const auto* taken) {
                                                   *sum -= bytes;
                                                   delete taken;
                                                 }};
    frame.body = body->filled();
    frame.body_owner = body;
  }

  const TransportOptions options_;
  const Receiver receiver_;
  zmq::context_t context_;
  /// Set by listen(); only the thread uses its connections.
  std::unique_ptr<Inbox> inbox_;
  std::uint64_t frames_refused_ = 0;
  OutboundGuard guard_;
  std::uint64_t outbound_refused_ = 0;
  Wake wake_;
  std::atomic<bool> stopping_ = false;

  /// The transport whose thread this is; null on all other threads.
  static inline thread_local const Thread* receives_here = nullptr;

  std::mutex mutex_;
  std::vector<Order> orders_;
  std::size_t ordered_bytes_ = 0;
  /// The connections to which orders have added frames that are not sent yet.
  std::vector<OutboundConnection*> filled_;
  /// Only the thread adds and removes connections.
  std::unordered_map<Peer, Connection, PeerHash> connections_;
  Clock::time_point next_look_{};
  const std::shared_ptr<std::atomic<std::size_t>> shared_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;

  std::thread thread_;
};

Result<std::unique_ptr<Transport>> Transport::open(const TransportOptions& options,
                                                   Receiver receiver) {
  auto thread = std::make_unique<Thread>(options, std::move(receiver));
  if (auto listening = thread->listen(); !listening) return std::move(listening).error();
  return std::unique_ptr<Transport>{new Transport{std::move(thread)}};
}

Transport::Transport(std::unique_ptr<Thread> thread) : thread_(std::move(thread)) {}
Transport::~Transport() = default;

const std::string& Transport::address() const noexcept { return thread_->address(); }
void Transport::send(const Peer& to, TrafficClass traffic_class, std::span<Frame> frames) {
  thread_->order(to, traffic_class, frames);
}
void Transport::forget(const Peer& peer) { thread_->order_to_forget(peer); }
TransportCounts Transport::counts() const { return thread_->counts(); }

}  // namespace starling::wire
