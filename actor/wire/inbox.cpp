#include "starling/actor/wire/inbox.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "starling/actor/wire/listener.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;

/// The id of the listener. Connections have ids from 1 on.
constexpr std::uint64_t listener_id = 0;
/// The most bytes in one read, except when the rest of a long part is read.
constexpr std::size_t read_buffer_bytes = std::size_t{16} << 10U;
/// The most bytes that are read from a connection in one turn.
constexpr std::size_t turn_bytes_max = std::size_t{1} << 20U;
/// The most bytes that are read from all newcomers together in one period, and from one newcomer in
/// one turn. Without these limits, peers that never complete a message could take up the time that
/// jobs need.
constexpr std::size_t newcomer_period_bytes_max = std::size_t{2} << 20U;
constexpr auto newcomer_period = 50ms;
constexpr std::size_t newcomer_turn_bytes_max = std::size_t{64} << 10U;
/// The most connections that are accepted in one turn of the listener.
constexpr int accepts_at_once = 32;
/// The most events that one epoll_wait() returns.
constexpr int ready_at_once = 64;
/// The most turns in one call of next(). Without this limit, the call might not return while input
/// arrives that completes no message.
constexpr int turns_at_once = 64;
/// If the system has no descriptor for a new connection, the inbox accepts again after this time.
constexpr auto accept_retry_after = 100ms;
/// The longest time between two calls of maintain().
constexpr auto maintain_every = 1s;

/// Turns on keep-alive probes, without which connections from hosts that have vanished would stay
/// for ever, and turns off Nagle's algorithm.
void set_options(int descriptor) {
  const int on = 1;
  const int seconds = 10;
  const int probes = 3;
  (void)::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Makes `epoll` report when the descriptor is readable, under `id`. Returns false on failure.
bool watch(int epoll, int descriptor, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

struct Inbox::Connection {
  Connection(Id own_id, int own_descriptor, const ZmtpRules& rules, Clock::time_point now)
      : id(own_id),
        descriptor(own_descriptor),
        accepted_at(now),
        last_read_at(now),
        receiver(rules) {}
  ~Connection() { ::close(descriptor); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool is_open() const { return receiver.stage() == ZmtpReceiver::Stage::open; }
  [[nodiscard]] bool is_newcomer() const { return is_open() && !has_delivered; }

  const Id id;
  const int descriptor;
  const Clock::time_point accepted_at;
  /// When bytes were last read from the connection.
  Clock::time_point last_read_at;
  ZmtpReceiver receiver;
  /// True if `open_count_` includes the connection.
  bool counts_as_open = false;
  /// True if the peer has sent at least one whole message.
  bool has_delivered = false;
  /// The number of bytes held of an unfinished message, and since when some are held.
  std::size_t held_bytes = 0;
  Clock::time_point hold_started_at{};
};

Result<std::unique_ptr<Inbox>> Inbox::open(InboxOptions options) {
  auto listening = open_listener(options.listen);
  if (!listening) return std::move(listening).error();
  std::unique_ptr<Inbox> inbox{new Inbox{std::move(options)}};
  inbox->listener_ = listening->descriptor;
  inbox->address_ = listening->address;
  inbox->epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (inbox->epoll_ >= 0) inbox->watch_listener();
  if (!inbox->is_listener_watched_) return Error{std::strerror(errno)};
  return inbox;
}

Inbox::Inbox(InboxOptions options)
    : options_(std::move(options)), read_buffer_(read_buffer_bytes) {}

Inbox::~Inbox() {
  connections_.clear();
  if (listener_ >= 0) ::close(listener_);
  if (epoll_ >= 0) ::close(epoll_);
}

std::optional<InboundMessage> Inbox::next() {
  turns_left_ = turns_at_once;
  do {
    if (auto message = decode()) return message;
  } while (read_more());
  return std::nullopt;
}

/// Decodes the bytes that were read from the current connection, until a message is complete or all
/// bytes are decoded.
std::optional<InboundMessage> Inbox::decode() {
  while (current_ != nullptr) {
    Connection& connection = *current_;
    std::optional<ZmtpReceiver::Fault> fault;
    try {
      if (!undecoded_.empty()) fault = connection.receiver.take(undecoded_);
    } catch (const std::bad_alloc&) {
      fault = ZmtpReceiver::Fault::protocol;
    }
    auto message = fault ? std::nullopt : connection.receiver.take_message();
    if (message) connection.has_delivered = true;
    handle_input(connection, fault);
    if (message) return message;
    if (current_ == nullptr || undecoded_.empty()) return std::nullopt;
  }
  return std::nullopt;
}

/// Reads bytes for decode(). Returns false if there is nothing to read or no turn is left.
bool Inbox::read_more() {
  while (true) {
    if (current_ != nullptr && read_current()) return true;
    current_ = nullptr;
    if (!select_ready()) return false;
  }
}

/// Reads from the current connection. Returns false if its turn is over or it was closed.
bool Inbox::read_current() {
  Connection& connection = *current_;
  const bool is_newcomer = connection.is_newcomer();
  const std::size_t bytes_max = is_newcomer ? newcomer_turn_bytes_max : turn_bytes_max;
  if (turn_bytes_ >= bytes_max) return false;
  if (is_newcomer && newcomer_bytes_ >= newcomer_period_bytes_max) {
    suspend(connection);
    return false;
  }
  try {
    const auto direct = connection.receiver.direct_buffer();
    std::span<std::byte> buffer = direct.empty() ? std::span{read_buffer_} : direct;
    buffer = buffer.first(std::min(buffer.size(), bytes_max));
    const auto received = ::recv(connection.descriptor, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (received <= 0) {
      close(connection.id);
      return false;
    }
    const auto bytes = static_cast<std::size_t>(received);
    // A read that does not fill the buffer has emptied the socket, so it ends the turn.
    turn_bytes_ = bytes < buffer.size() ? turn_bytes_max : turn_bytes_ + bytes;
    connection.last_read_at = Clock::now();
    if (is_newcomer) newcomer_bytes_ += bytes;
    if (direct.empty())
      undecoded_ = std::span<const std::byte>{read_buffer_}.first(bytes);
    else if (const auto fault = connection.receiver.take_direct(bytes))
      handle_input(connection, fault);
    else
      update_held_bytes(connection);
    return current_ != nullptr;
  } catch (const std::bad_alloc&) {
    refuse(connection.id);
    return false;
  }
}

/// Gives the turn to the next connection that has something to read, and accepts new connections.
/// Returns false if no connection has something to read or no turn is left.
bool Inbox::select_ready() {
  for (bool has_polled = false;;) {
    while (!ready_.empty()) {
      if (turns_left_-- == 0) return false;
      const Id id = ready_.front();
      ready_.pop_front();
      if (id == listener_id) {
        accept_some();
        continue;
      }
      const auto found = connections_.find(id);
      if (found == connections_.end()) continue;
      current_ = found->second.get();
      turn_bytes_ = 0;
      return true;
    }
    if (std::exchange(has_polled, true)) return false;
    std::array<epoll_event, ready_at_once> events{};
    const int count = ::epoll_wait(epoll_, events.data(), ready_at_once, 0);
    for (int i = 0; i < count; ++i)
      ready_.push_back(events.at(static_cast<std::size_t>(i)).data.u64);
  }
}

void Inbox::accept_some() {
  for (int i = 0; i < accepts_at_once; ++i) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      try {
        add_connection(descriptor);
      } catch (const std::bad_alloc&) {
        ++refused_;
        return;
      }
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (free_descriptor()) continue;
      // Stops watching the listener, which would otherwise be readable all the time.
      (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
      is_listener_watched_ = false;
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void Inbox::add_connection(int descriptor) {
  if (connections_.size() - open_count_ >= options_.handshakes_max) close_random_handshake();
  set_options(descriptor);
  const Id id = ++last_id_;
  std::unique_ptr<Connection> connection;
  try {
    connection = std::make_unique<Connection>(id, descriptor, options_.rules, Clock::now());
  } catch (const std::bad_alloc&) {
    ::close(descriptor);
    throw;
  }
  if (!watch(epoll_, descriptor, id)) return;
  connections_.emplace(id, std::move(connection));
  handshakes_.push_back(id);
}

void Inbox::watch_listener() {
  if (!is_listener_watched_) is_listener_watched_ = watch(epoll_, listener_, listener_id);
}

/// Closes a connection to free its descriptor for a new one. Returns false if no connection could
/// be closed.
bool Inbox::free_descriptor() {
  const std::size_t before = connections_.size();
  if (before > open_count_)
    close_random_handshake();
  else if (before > 0)
    close_idlest();
  return connections_.size() < before;
}

/// Called after decoding: closes the connection if there was a fault; otherwise sends the answer of
/// the handshake, if any, and updates the counts.
void Inbox::handle_input(Connection& connection, std::optional<ZmtpReceiver::Fault> fault) {
  if (fault) return refuse(connection.id);
  send_answer(connection);
  if (current_ == nullptr) return;
  if (connection.is_open() && !connection.counts_as_open) {
    if (open_count_ >= options_.open_max) close_idlest();
    connection.counts_as_open = true;
    ++open_count_;
  }
  update_held_bytes(connection);
}

void Inbox::send_answer(Connection& connection) {
  const Bytes answer = connection.receiver.take_answer();
  if (answer.empty()) return;
  // All answers together have a few hundred bytes. They fit in the socket's buffer, so a partial
  // send is a fault.
  const auto sent = ::send(connection.descriptor, answer.data(), answer.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(answer.size())) close(connection.id);
}

void Inbox::suspend(const Connection& connection) {
  (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.descriptor, nullptr);
  suspended_.push_back(connection.id);
}

void Inbox::resume_newcomers(Clock::time_point now) {
  if (now - period_started_at_ < newcomer_period) return;
  period_started_at_ = now;
  newcomer_bytes_ = 0;
  for (const Id id : std::exchange(suspended_, {})) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && !watch(epoll_, found->second->descriptor, id)) close(id);
  }
}

/// Updates the connection's and the total number of held bytes. Closes the connection with the
/// oldest unfinished message if the total is too large.
void Inbox::update_held_bytes(Connection& connection) {
  const std::size_t bytes = connection.receiver.unfinished_bytes();
  if (bytes > 0 && connection.held_bytes == 0) connection.hold_started_at = Clock::now();
  held_bytes_ += bytes - connection.held_bytes;
  connection.held_bytes = bytes;
  if (held_bytes_ > options_.unfinished_bytes_max) close_oldest_unfinished();
}

void Inbox::close(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  held_bytes_ -= connection.held_bytes;
  if (connection.counts_as_open) --open_count_;
  if (current_ == &connection) {
    current_ = nullptr;
    undecoded_ = {};
  }
  connections_.erase(found);
}

void Inbox::refuse(Id id) {
  ++refused_;
  close(id);
}

/// Closes the connection whose unfinished message has been held for the longest time. Connections
/// that have never sent a whole message are closed before all others.
void Inbox::close_oldest_unfinished() {
  const Connection* oldest = nullptr;
  const auto is_older = [](const Connection& a, const Connection& b) {
    return std::pair{a.has_delivered, a.hold_started_at} <
           std::pair{b.has_delivered, b.hold_started_at};
  };
  for (const auto& [id, connection] : connections_)
    if (connection->held_bytes > 0 && (oldest == nullptr || is_older(*connection, *oldest)))
      oldest = connection.get();
  if (oldest != nullptr) refuse(oldest->id);
}

/// Closes a random connection in handshake. If the oldest were closed, a peer that opens
/// connections fast enough would make this node close those of all others.
void Inbox::close_random_handshake() {
  while (!handshakes_.empty()) {
    const auto index = static_cast<std::ptrdiff_t>(random_() % handshakes_.size());
    const Id id = handshakes_[static_cast<std::size_t>(index)];
    handshakes_.erase(handshakes_.begin() + index);
    const auto found = connections_.find(id);
    if (found != connections_.end() && !found->second->is_open()) return refuse(id);
  }
}

/// Closes the open connection that has been silent for the longest time. Connections that have
/// never sent a whole message are closed before all others.
void Inbox::close_idlest() {
  const Connection* idlest = nullptr;
  const auto is_more_idle = [](const Connection& a, const Connection& b) {
    return std::pair{a.has_delivered, a.last_read_at} < std::pair{b.has_delivered, b.last_read_at};
  };
  for (const auto& [id, connection] : connections_)
    if (connection->counts_as_open && (idlest == nullptr || is_more_idle(*connection, *idlest)))
      idlest = connection.get();
  if (idlest != nullptr) refuse(idlest->id);
}

std::chrono::milliseconds Inbox::maintain() {
  const auto now = Clock::now();
  std::chrono::milliseconds wait_max = suspended_.empty() ? maintain_every : newcomer_period;
  resume_newcomers(now);
  if (!is_listener_watched_) {
    watch_listener();
    wait_max = std::min<std::chrono::milliseconds>(wait_max, accept_retry_after);
  }
  for (; !handshakes_.empty(); handshakes_.pop_front()) {
    const auto found = connections_.find(handshakes_.front());
    if (found == connections_.end() || found->second->is_open()) continue;
    const auto left = found->second->accepted_at + options_.handshake_time_max - now;
    if (left > 0ms) return std::min(wait_max, std::chrono::ceil<std::chrono::milliseconds>(left));
    refuse(found->first);
  }
  return wait_max;
}

}  // namespace starling::wire
