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

/// The id of the listener; connections have ids from 1 on.
constexpr std::uint64_t listener_id = 0;
/// The most bytes that are read at once where they do not belong to a long part.
constexpr std::size_t scratch_bytes = std::size_t{16} << 10U;
/// The most bytes that a connection may send before others have their turn.
constexpr std::size_t turn_bytes_max = std::size_t{1} << 20U;
/// Newcomers are connections that are open and have never sent a whole message. All of them
/// together may send `newcomer_bytes_max` bytes in a period, and each `newcomer_turn_bytes_max` in
/// a turn: reading takes time that jobs need, and a peer that has only announced a message can send
/// for ever.
constexpr std::size_t newcomer_bytes_max = std::size_t{2} << 20U;
constexpr auto newcomer_period = 50ms;
constexpr std::size_t newcomer_turn_bytes_max = std::size_t{64} << 10U;
/// The most connections that are accepted before those that are open are read.
constexpr int accepted_at_once = 32;
constexpr int ready_at_once = 64;
/// The most connections that one call of next() reads from, so that input that completes no message
/// keeps nobody waiting.
constexpr int turns_at_once = 64;
/// The time until we accept again after the system had no descriptor for a connection.
constexpr auto accept_again_after = 100ms;
constexpr auto look_again_after = 1s;

/// Turns on keep-alive probes, without which the connections of hosts that have vanished would stay
/// for ever.
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

bool watch(int epoll, int descriptor, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

struct Inbox::Connection {
  Connection(Id own_id, int own_descriptor, const ZmtpRules& rules, Clock::time_point now)
      : id(own_id), descriptor(own_descriptor), accepted(now), heard(now), receiver(rules) {}
  ~Connection() { ::close(descriptor); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool is_open() const { return receiver.stage() == ZmtpReceiver::Stage::open; }
  [[nodiscard]] bool is_newcomer() const { return is_open() && !has_delivered; }

  const Id id;
  const int descriptor;
  const Clock::time_point accepted;
  /// When something was read last.
  Clock::time_point heard;
  ZmtpReceiver receiver;
  bool was_open = false;
  /// It has sent a whole message.
  bool has_delivered = false;
  /// Bytes held of an unfinished message, and when it began.
  std::size_t held_bytes = 0;
  Clock::time_point held_since{};
};

Result<std::unique_ptr<Inbox>> Inbox::open(InboxOptions options) {
  auto listening = listen_at(options.listen);
  if (!listening) return std::move(listening).error();
  std::unique_ptr<Inbox> inbox{new Inbox{std::move(options)}};
  inbox->listener_ = listening->descriptor;
  inbox->address_ = listening->address;
  inbox->epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (inbox->epoll_ >= 0) inbox->watch_listener();
  if (!inbox->is_listener_watched_) return Error{std::strerror(errno)};
  return inbox;
}

Inbox::Inbox(InboxOptions options) : options_(std::move(options)), scratch_(scratch_bytes) {}

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

/// Decodes the bytes read of the current connection, until a message is whole or all is taken.
std::optional<InboundMessage> Inbox::decode() {
  while (current_ != nullptr) {
    Connection& connection = *current_;
    std::optional<ZmtpReceiver::Fault> fault;
    try {
      if (!read_.empty()) fault = connection.receiver.take(read_);
    } catch (const std::bad_alloc&) {
      fault = ZmtpReceiver::Fault::protocol;
    }
    auto message = fault ? std::nullopt : connection.receiver.take_message();
    if (message) connection.has_delivered = true;
    after(connection, fault);
    if (message) return message;
    if (current_ == nullptr || read_.empty()) return std::nullopt;
  }
  return std::nullopt;
}

/// Reads bytes for decode(); false where nothing more has come.
bool Inbox::read_more() {
  while (true) {
    if (current_ != nullptr && read_current()) return true;
    current_ = nullptr;
    if (!find_ready()) return false;
  }
}

/// Reads from the current connection; false where its turn is over.
bool Inbox::read_current() {
  Connection& connection = *current_;
  const bool is_newcomer = connection.is_newcomer();
  const std::size_t bytes_max = is_newcomer ? newcomer_turn_bytes_max : turn_bytes_max;
  if (turn_bytes_ >= bytes_max) return false;
  if (is_newcomer && newcomer_bytes_ >= newcomer_bytes_max) {
    pause(connection);
    return false;
  }
  try {
    const auto place = connection.receiver.place();
    std::span<std::byte> room = place.empty() ? std::span{scratch_} : place;
    room = room.first(std::min(room.size(), bytes_max));
    const auto received = ::recv(connection.descriptor, room.data(), room.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (received <= 0) {
      end(connection.id);
      return false;
    }
    const auto bytes = static_cast<std::size_t>(received);
    // A read that does not fill the buffer ends the turn: the rest comes later, if there is any.
    turn_bytes_ = bytes < room.size() ? turn_bytes_max : turn_bytes_ + bytes;
    connection.heard = Clock::now();
    if (is_newcomer) newcomer_bytes_ += bytes;
    if (place.empty())
      read_ = std::span<const std::byte>{scratch_}.first(bytes);
    else if (const auto fault = connection.receiver.take_placed(bytes))
      after(connection, fault);
    else
      count_held(connection);
    return current_ != nullptr;
  } catch (const std::bad_alloc&) {
    refuse(connection.id);
    return false;
  }
}

/// Gives the next connection that has something to read its turn; false where there is none.
bool Inbox::find_ready() {
  for (bool asked = false;;) {
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
    if (std::exchange(asked, true)) return false;
    std::array<epoll_event, ready_at_once> events{};
    const int count = ::epoll_wait(epoll_, events.data(), ready_at_once, 0);
    for (int i = 0; i < count; ++i)
      ready_.push_back(events.at(static_cast<std::size_t>(i)).data.u64);
  }
}

void Inbox::accept_some() {
  for (int i = 0; i < accepted_at_once; ++i) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      try {
        add(descriptor);
      } catch (const std::bad_alloc&) {
        ++refused_;
        return;
      }
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (make_room()) continue;
      // The listener would be readable all the time.
      (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
      is_listener_watched_ = false;
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void Inbox::add(int descriptor) {
  if (connections_.size() - open_count_ >= options_.handshakes_max) end_a_handshake();
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

/// Closes a connection to free a descriptor for a new one; false where it could not.
bool Inbox::make_room() {
  const std::size_t before = connections_.size();
  if (before > open_count_)
    end_a_handshake();
  else if (before > 0)
    end_an_open_one();
  return connections_.size() < before;
}

void Inbox::after(Connection& connection, std::optional<ZmtpReceiver::Fault> fault) {
  if (fault) return refuse(connection.id);
  answer(connection);
  if (current_ == nullptr) return;
  if (connection.is_open() && !connection.was_open) {
    if (open_count_ >= options_.open_max) end_an_open_one();
    connection.was_open = true;
    ++open_count_;
  }
  count_held(connection);
}

void Inbox::answer(Connection& connection) {
  const Bytes answer = connection.receiver.take_answer();
  if (answer.empty()) return;
  // A few hundred bytes in all: the socket takes them, unless the peer reads nothing.
  const auto sent = ::send(connection.descriptor, answer.data(), answer.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(answer.size())) end(connection.id);
}

void Inbox::pause(const Connection& connection) {
  (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.descriptor, nullptr);
  paused_.push_back(connection.id);
}

void Inbox::resume_newcomers(Clock::time_point now) {
  if (now - period_began_ < newcomer_period) return;
  period_began_ = now;
  newcomer_bytes_ = 0;
  for (const Id id : std::exchange(paused_, {})) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && !watch(epoll_, found->second->descriptor, id)) end(id);
  }
}

void Inbox::count_held(Connection& connection) {
  const std::size_t bytes = connection.receiver.unfinished_bytes();
  if (bytes > 0 && connection.held_bytes == 0) connection.held_since = Clock::now();
  held_bytes_ += bytes - connection.held_bytes;
  connection.held_bytes = bytes;
  if (held_bytes_ > options_.unfinished_bytes_max) end_oldest_message();
}

void Inbox::end(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  held_bytes_ -= connection.held_bytes;
  if (connection.was_open) --open_count_;
  if (current_ == &connection) {
    current_ = nullptr;
    read_ = {};
  }
  connections_.erase(found);
}

void Inbox::refuse(Id id) {
  ++refused_;
  end(id);
}

/// Ends the connection whose unfinished message is oldest, first among those that have never sent a
/// whole message.
void Inbox::end_oldest_message() {
  const Connection* oldest = nullptr;
  const auto is_older = [](const Connection& a, const Connection& b) {
    return std::pair{a.has_delivered, a.held_since} < std::pair{b.has_delivered, b.held_since};
  };
  for (const auto& [id, connection] : connections_)
    if (connection->held_bytes > 0 && (oldest == nullptr || is_older(*connection, *oldest)))
      oldest = connection.get();
  if (oldest != nullptr) refuse(oldest->id);
}

/// Ends a random handshake: were it the oldest, a peer that opens connections fast enough would end
/// those of all others.
void Inbox::end_a_handshake() {
  while (!handshakes_.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(random_() % handshakes_.size());
    const Id id = handshakes_[static_cast<std::size_t>(at)];
    handshakes_.erase(handshakes_.begin() + at);
    const auto found = connections_.find(id);
    if (found != connections_.end() && !found->second->is_open()) return refuse(id);
  }
}

/// Ends the connection that has been silent for longest, first among those that have never sent a
/// message.
void Inbox::end_an_open_one() {
  const Connection* last = nullptr;
  const auto is_less = [](const Connection& a, const Connection& b) {
    return std::pair{a.has_delivered, a.heard} < std::pair{b.has_delivered, b.heard};
  };
  for (const auto& [id, connection] : connections_)
    if (connection->was_open && (last == nullptr || is_less(*connection, *last)))
      last = connection.get();
  if (last != nullptr) refuse(last->id);
}

std::chrono::milliseconds Inbox::tend() {
  const auto now = Clock::now();
  std::chrono::milliseconds patience = paused_.empty() ? look_again_after : newcomer_period;
  resume_newcomers(now);
  if (!is_listener_watched_) {
    watch_listener();
    patience = std::min<std::chrono::milliseconds>(patience, accept_again_after);
  }
  for (; !handshakes_.empty(); handshakes_.pop_front()) {
    const auto found = connections_.find(handshakes_.front());
    if (found == connections_.end() || found->second->is_open()) continue;
    const auto left = found->second->accepted + options_.handshake_max - now;
    if (left > 0ms) return std::min(patience, std::chrono::ceil<std::chrono::milliseconds>(left));
    refuse(found->first);
  }
  return patience;
}

}  // namespace starling::wire
