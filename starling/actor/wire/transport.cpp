#include "starling/actor/wire/transport.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

#include "starling/actor/wire/intake.hpp"
#include "starling/actor/wire/listener.hpp"
#include "starling/actor/wire/outlet.hpp"
#include "starling/actor/wire/pack.hpp"
#include "starling/base/blocks.hpp"

namespace starling::wire {
namespace {

constexpr const char* zap_domain = "starling";
/// Of what has come and is kept where ZeroMQ put it, which spares a copy. More than that is better
/// in blocks that are used again.
constexpr std::size_t shared_bytes_max = std::size_t{2} << 20U;
/// What comes and is longer keeps the thread that receives from its work for long.
constexpr std::size_t small_bytes = std::size_t{64} << 10U;
/// What was sent just before the end has so long to leave.
constexpr std::chrono::milliseconds last_words{50};
/// What waits for the thread to take it up; more is dropped.
constexpr std::size_t ordered_bytes_max = std::size_t{256} << 20U;
/// So many frames are received before what is to be sent has its turn.
constexpr std::size_t receive_burst = 64;
using Clock = std::chrono::steady_clock;

/// A number from another thread wakes the poll.
class Wake {
 public:
  Wake() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Wake() { ::close(descriptor_); }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring() const {
    const std::uint64_t one = 1;
    (void)!::write(descriptor_, &one, sizeof one);
  }
  void hush() const {
    std::uint64_t rings = 0;
    (void)!::read(descriptor_, &rings, sizeof rings);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

KeyPair make_keys() {
  std::array<char, 41> public_text{};
  std::array<char, 41> secret_text{};
  KeyPair keys{};
  zmq_curve_keypair(public_text.data(), secret_text.data());
  zmq_z85_decode(keys.public_key.data(), public_text.data());
  zmq_z85_decode(keys.secret_key.data(), secret_text.data());
  return keys;
}

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
      for (auto& lane : connection.lanes)
        if (lane) lane->linger_for(last_words);
  }

  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  Result<void> listen() {
    using namespace zmq::sockopt;
    if (wake_.descriptor() < 0)
      return Error{std::string{"cannot listen at "} + options_.listen + ": " +
                   std::strerror(errno)};
    try {
      if (options_.keys) {
        zap_ = zmq::socket_t{context_, zmq::socket_type::rep};
        zap_.set(linger, 0);
        zap_.bind("inproc://zeromq.zap.01");
      }
      router_ = zmq::socket_t{context_, zmq::socket_type::router};
      // Else an address of IPv4 would be told as one of IPv6.
      router_.set(ipv6, options_.listen.find_first_of("[*") < options_.listen.rfind(':'));
      router_.set(linger, 0);
      router_.set(backlog, 4096);
      router_.set(handshake_ivl, 3000);
      router_.set(rcvhwm, data_waiting_max);
      // Else the connections of hosts that have vanished would stay for ever.
      router_.set(heartbeat_ivl, 10'000);
      router_.set(heartbeat_timeout, 30'000);
      router_.set(maxmsgsize, static_cast<std::int64_t>(options_.part_bytes_max));
      if (options_.keys) {
        router_.set(curve_server, true);
        router_.set(curve_secretkey, buffer_of(options_.keys->secret_key));
        router_.set(zmq::sockopt::zap_domain, wire::zap_domain);
      }
      bind_to_speakers(router_, options_.listen);
      address_ = router_.get(last_endpoint);
      intake_.emplace(address_, options_.unfinished_bytes_max);
    } catch (const zmq::error_t& fault) {
      return Error{"cannot listen at " + options_.listen + ": " + fault.what() +
                   "; valid: tcp://HOST:PORT with an address of this machine and a free port"};
    }
    // Signals are for the program's own threads: here one would end a wait with an error.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread{[this] { run(); }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  /// Sends in the caller's thread where nothing waits before it: a thread that must wake costs more
  /// than a small frame's whole way.
  void order(const Peer& peer, Lane lane, std::span<Frame> frames) {
    const std::lock_guard lock{mutex_};
    const bool is_here = receives_here == this;
    Outlet* outlet = is_here || !orders_.empty() ? nullptr : outlet_to(peer, lane);
    if (outlet == nullptr || outlet->is_waiting()) {
      if (!is_here && orders_.empty()) wake_.ring();
      for (Frame& frame : frames) {
        const std::size_t bytes = frame.head.size() + frame.body_size();
        if (ordered_bytes_ + bytes > ordered_bytes_max) {
          ++dropped_;
          continue;
        }
        ordered_bytes_ += bytes;
        orders_.push_back(Sending{peer, lane, std::move(frame)});
      }
      return;
    }
    for (Frame& frame : frames) add(*outlet, std::move(frame));
    flush(*outlet);
    if (outlet->is_waiting()) wake_.ring();
  }
  void order_to_forget(Peer peer) {
    const std::lock_guard lock{mutex_};
    if (orders_.empty()) wake_.ring();
    orders_.push_back(Forgetting{std::move(peer)});
  }

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] TransportCounts counts() const { return {sent_, received_, dropped_, refused_}; }

 private:
  struct Sending {
    Peer peer;
    Lane lane;
    Frame frame;
  };
  struct Forgetting {
    Peer peer;
  };
  using Order = std::variant<Sending, Forgetting>;

  struct Connection {
    std::array<std::unique_ptr<Outlet>, 3> lanes;
    Clock::time_point used;
  };
  struct PeerHash {
    std::size_t operator()(const Peer& peer) const noexcept {
      return std::hash<std::string>{}(peer.address) ^ (peer.key ? KeyHash{}(*peer.key) : 0);
    }
  };

  /// Null where there is none yet. Requires: the lock is held, as for all that follows but run(),
  /// receive() and judge().
  Outlet* outlet_to(const Peer& peer, Lane lane) {
    const auto found = connections_.find(peer);
    if (found == connections_.end()) return nullptr;
    found->second.used = Clock::now();
    return found->second.lanes.at(static_cast<std::size_t>(lane)).get();
  }

  void add(Outlet& outlet, Frame&& frame) {
    try {
      ++(outlet.add(std::move(frame)) ? sent_ : dropped_);
    } catch (const std::exception&) {
      ++dropped_;  // no memory, or no connection: lost like what a broken one loses
    }
  }

  void run() {
    receives_here = this;
    // The descriptors of ZeroMQ's sockets say that there may be something new since all there was
    // was taken. zmq_poll() would make more calls of the system for each message.
    const int router = router_.get(zmq::sockopt::fd);
    const int zap = options_.keys ? zap_.get(zmq::sockopt::fd) : -1;
    std::vector<pollfd> items;
    std::vector<Outlet*> waiting;
    for (bool has_more = true; !stopping_;) {
      items.assign({{router, POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}, {zap, POLLIN, 0}});
      waiting.clear();
      auto patience = std::min(options_.idle_max, Intake::look_every);
      refused_ += intake_->look();
      {
        const std::lock_guard lock{mutex_};
        // Outlets where something waits are this thread's alone, and no others are polled.
        for (auto& [peer, connection] : connections_)
          for (auto& lane : connection.lanes)
            if (lane && lane->is_waiting()) {
              waiting.push_back(lane.get());
              items.push_back({lane->descriptor(), POLLIN, 0});
            }
      }
      if (has_more) patience = {};
      (void)::poll(items.data(), items.size(), static_cast<int>(patience.count()));
      if (items[1].revents != 0) wake_.hush();
      if (items[2].revents != 0)
        while (judge()) continue;
      {
        const std::lock_guard lock{mutex_};
        for (Outlet* outlet : waiting) flush(*outlet);
        carry_out_orders();
        close_idle();
      }
      if (has_more || items[0].revents != 0) has_more = receive();
    }
  }

  void answer() {
    const std::lock_guard lock{mutex_};
    carry_out_orders();
  }

  void carry_out_orders() {
    for (Order& order : orders_) std::visit([this](auto& o) { carry_out(o); }, order);
    orders_.clear();
    ordered_bytes_ = 0;
    flush_filled();
  }

  /// What was added by orders. Called before an outlet may end.
  void flush_filled() {
    for (Outlet* outlet : filled_) flush(*outlet);
    filled_.clear();
  }

  void flush(Outlet& outlet) {
    try {
      outlet.flush();
    } catch (const std::exception&) {
      ++dropped_;  // as above; what waits may go later
    }
  }

  void carry_out(Sending& sending) {
    const bool has_keys =
        sending.lane == Lane::gate ? options_.gate.has_value() : options_.keys.has_value();
    if (has_keys != sending.peer.key.has_value()) {
      ++dropped_;
      return;
    }
    Connection& connection = connection_to(sending.peer);
    auto& lane = connection.lanes.at(static_cast<std::size_t>(sending.lane));
    try {
      if (!lane) lane = std::make_unique<Outlet>(context_, sending.peer, options_, sending.lane);
    } catch (const zmq::error_t&) {
      ++dropped_;  // an address that is none, or no more sockets: nobody is there
      return;
    }
    add(*lane, std::move(sending.frame));
    if (filled_.empty() || filled_.back() != lane.get()) filled_.push_back(lane.get());
  }
  void carry_out(const Forgetting& forgetting) {
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
      for (auto& lane : connection.lanes)
        if (lane && now - lane->used() > options_.idle_max) lane.reset();
    std::erase_if(connections_, [](const auto& c) {
      return std::ranges::none_of(c.second.lanes, [](const auto& lane) { return lane != nullptr; });
    });
  }

  struct Received {
    zmq::message_t head;
    zmq::message_t body;
    bool fits = false;
  };

  /// Nothing where nothing has come.
  std::optional<Received> take_next() {
    zmq::message_t sender;
    if (!router_.recv(sender, zmq::recv_flags::dontwait)) return std::nullopt;
    Received next;
    next.fits = sender.more();
    if (intake_->is_watching()) intake_->delivered(zmq_msg_get(sender.handle(), ZMQ_SRCFD));
    if (sender.more()) (void)router_.recv(next.head);
    if (next.head.more()) (void)router_.recv(next.body);
    for (bool more = next.body.more(); more;) {
      zmq::message_t rest;
      (void)router_.recv(rest);
      more = rest.more();
      next.fits = false;
    }
    return next;
  }

  /// False where all that has come was taken.
  bool receive() {
    std::size_t taken = 0;
    for (std::optional<Received> next = take_next(); next;) {
      Received current = *std::move(next);
      const bool is_small = current.body.size() < small_bytes;
      // Whether another connection has begun to speak, ZeroMQ looks every hundred parts only, or
      // when asked for events: control would wait behind as many long messages.
      if (!is_small) (void)router_.get(zmq::sockopt::events);
      // What is taken must be handed on.
      next = taken < receive_burst ? take_next() : std::nullopt;
      taken += current.fits ? hand_on(current, is_small || !next) : 1;
      // Answers to what is small go together, which spares ZeroMQ's thread most of its calls.
      if (!next || !is_small) answer();
    }
    return taken >= receive_burst;
  }

  /// Frames in it, or one where there is none: a message has its price.
  std::size_t hand_on(Received& received, bool at_once) {
    Incoming incoming{{bytes_of(received.head), bytes_of(received.body), at_once}, std::nullopt};
    if (options_.keys) {
      incoming.key = parse_hex(user_of(received.head));
      if (!incoming.key) return 1;
      // ZeroMQ asks once for each connection; what was admitted then need not be so now.
      if (!admits(*incoming.key)) {
        ++refused_;
        return 1;
      }
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

  /// Lets a long body outlive the call, as far as there is room for it.
  void share(zmq::message_t& message, FrameView& frame) {
    const std::size_t bytes = message.size();
    if (bytes < blocks::least || *shared_bytes_ + bytes > shared_bytes_max) return;
    *shared_bytes_ += bytes;
    const std::shared_ptr<const zmq::message_t> body{
        new zmq::message_t{std::move(message)},
        [sum = shared_bytes_, bytes](const zmq::message_t* taken) {
          *sum -= bytes;
          delete taken;
        }};
    frame.body = bytes_of(*body);
    frame.body_owner = body;
  }

  bool admits(const Key& key) const { return options_.admits && options_.admits(key); }

  static std::span<const std::byte> bytes_of(const zmq::message_t& message) {
    return {static_cast<const std::byte*>(message.data()), message.size()};
  }

  static std::string_view user_of(const zmq::message_t& message) {
    const char* user = zmq_msg_gets(const_cast<zmq::message_t&>(message).handle(), "User-Id");
    return user == nullptr ? "" : user;
  }

  /// Answers ZeroMQ's question whether a client may connect (RFC 27). False where there is none.
  bool judge() {
    std::vector<zmq::message_t> request;
    zmq::message_t part;
    while (zap_.recv(part, zmq::recv_flags::dontwait)) {
      const bool more = part.more();
      request.push_back(std::move(part));
      part = zmq::message_t{};
      if (!more) break;
    }
    if (request.size() < 2) return false;
    std::string user;
    if (request.size() == 7 && request[5].to_string_view() == "CURVE" &&
        request[6].size() == Key{}.size()) {
      Key key{};
      std::memcpy(key.data(), request[6].data(), key.size());
      if (admits(key)) user = print_hex(key);
    }
    if (user.empty()) ++refused_;
    const auto say = [&](std::string_view text, bool more = true) {
      zap_.send(zmq::buffer(text), more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    };
    say("1.0");
    say(request[1].to_string_view());
    // After 400, ZeroMQ's clients would not try again; and who is unknown may be introduced.
    say(user.empty() ? "300" : "200");
    say(user.empty() ? "not a key of this cluster" : "");
    say(user);
    say("", false);
    return true;
  }

  const TransportOptions options_;
  const Receiver receiver_;
  zmq::context_t context_;
  zmq::socket_t router_;
  zmq::socket_t zap_;
  std::string address_;
  /// From listen() on.
  std::optional<Intake> intake_;
  Wake wake_;
  std::atomic<bool> stopping_ = false;

  /// Whose thread this is.
  static inline thread_local const Thread* receives_here = nullptr;

  std::mutex mutex_;
  std::vector<Order> orders_;
  std::size_t ordered_bytes_ = 0;
  /// Where orders have put something that is not sent yet.
  std::vector<Outlet*> filled_;
  /// Made and ended by the thread.
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
void Transport::send(const Peer& to, Lane lane, std::span<Frame> frames) {
  thread_->order(to, lane, frames);
}
void Transport::forget(const Peer& peer) { thread_->order_to_forget(peer); }
TransportCounts Transport::counts() const { return thread_->counts(); }

}  // namespace starling::wire
