#include "tests/hosts/forwarder.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "tests/waiting.hpp"

namespace starling::hosts {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t piece_bytes_max = std::size_t{16} << 10U;
/// The most bytes that are buffered for one direction of one connection. If the buffer is full, no
/// more bytes are received, so that the sender waits.
constexpr std::size_t buffered_bytes_max = std::size_t{1} << 20U;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/// Returns a socket that listens on a free port of the loopback, and sets `port`.
int listen_on_free_port(std::uint16_t& port) {
  const int made = make_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (made < 0 || ::bind(made, plain, size) != 0 || ::listen(made, 64) != 0 ||
      ::getsockname(made, plain, &size) != 0)
    std::abort();
  port = ntohs(address.sin_port);
  return made;
}

/// True if the socket call that has just failed may succeed later.
bool is_temporary_error() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS || errno == ENOTCONN;
}

/// Closes a connection with a TCP reset.
void reset(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

}  // namespace

/// One forwarded connection: two sockets, and for each direction the bytes that were received but
/// not sent yet.
class Forwarder::Relay {
 public:
  Relay(int client, int server) : sides_{client, server} {}
  ~Relay() {
    for (const int side : sides_) reset(side);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Returns the events that the two sockets wait for.
  [[nodiscard]] std::array<pollfd, 2> poll_requests(const LinkFaults& faults) const {
    std::array<pollfd, 2> all{};
    for (std::size_t i = 0; i < 2; ++i) {
      const bool may_receive =
          !faults.silent && directions_[i].bytes < buffered_bytes_max && !directions_[i].has_ended;
      const auto& other = directions_[1 - i];
      const bool may_send = !faults.silent && is_due(other);
      all[i] = {sides_[i],
                static_cast<short>((may_receive ? POLLIN : 0) | (may_send ? POLLOUT : 0)), 0};
    }
    return all;
  }

  /// Receives and sends what it can. Returns false if the connection has ended.
  bool relay_bytes(Forwarder& forwarder, const LinkFaults& faults) {
    if (faults.silent) return true;
    for (std::size_t i = 0; i < 2; ++i)
      if (!receive(forwarder, faults, i) || !send_due(faults, i)) return false;
    return !(directions_[0].has_ended && directions_[1].has_ended);
  }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    Clock::time_point due_at;
  };
  struct Direction {
    std::deque<Piece> pieces;
    std::size_t bytes = 0;
    /// When the piece received last is due. A later piece is due no earlier.
    Clock::time_point last_due_at;
    /// When the limited bandwidth allows the next bytes to be sent.
    Clock::time_point may_send_at;
    /// The sending side has closed this direction.
    bool has_ended = false;
  };

  static bool is_due(const Direction& direction) {
    return !direction.pieces.empty() &&
           std::max(direction.pieces.front().due_at, direction.may_send_at) <= Clock::now();
  }

  bool receive(Forwarder& forwarder, const LinkFaults& faults, std::size_t from) {
    Direction& direction = directions_[from];
    while (direction.bytes < buffered_bytes_max && !direction.has_ended) {
      std::vector<std::byte> bytes(piece_bytes_max);
      const auto received = ::recv(sides_[from], bytes.data(), bytes.size(), 0);
      if (received < 0) return is_temporary_error();
      if (received == 0) {
        direction.has_ended = true;
        break;
      }
      bytes.resize(static_cast<std::size_t>(received));
      const auto is_drawn = [&](double share) {
        return share > 0 && std::uniform_real_distribution<>{0, 1}(forwarder.random_) < share;
      };
      if (is_drawn(faults.breaking)) {
        ++forwarder.broken_;
        return false;
      }
      if (is_drawn(faults.corrupted_share)) {
        ++forwarder.corrupted_pieces_;
        bytes[forwarder.random_() % bytes.size()] ^= std::byte{16};
      }
      auto due = Clock::now() + faults.delay;
      if (faults.jitter > 0ms)
        due += std::chrono::microseconds{
            forwarder.random_() %
            static_cast<std::uint64_t>(std::chrono::microseconds{faults.jitter}.count())};
      direction.last_due_at = std::max(direction.last_due_at, due);
      direction.bytes += bytes.size();
      forwarder.bytes_ += bytes.size();
      direction.pieces.push_back({std::move(bytes), direction.last_due_at});
    }
    return true;
  }

  bool send_due(const LinkFaults& faults, std::size_t from) {
    Direction& direction = directions_[from];
    while (is_due(direction)) {
      Piece& piece = direction.pieces.front();
      const auto sent =
          ::send(sides_[1 - from], piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return is_temporary_error();
      const auto count = static_cast<std::size_t>(sent);
      direction.bytes -= count;
      if (faults.bytes_per_s > 0)
        direction.may_send_at =
            std::max(direction.may_send_at, Clock::now()) +
            std::chrono::nanoseconds{1'000'000'000 * count / faults.bytes_per_s};
      piece.bytes.erase(piece.bytes.begin(), piece.bytes.begin() + sent);
      if (piece.bytes.empty()) direction.pieces.pop_front();
    }
    if (direction.has_ended && direction.pieces.empty()) ::shutdown(sides_[1 - from], SHUT_WR);
    return true;
  }

  std::array<int, 2> sides_;
  /// By the index of the sending side.
  std::array<Direction, 2> directions_;
};

Forwarder::Forwarder(std::uint64_t seed)
    : listener_socket_(listen_on_free_port(port_)), random_(seed), thread_([this] { run(); }) {}

Forwarder::~Forwarder() {
  is_stopping_ = true;
  thread_.join();
  ::close(listener_socket_);
}

void Forwarder::set(const LinkFaults& faults) {
  {
    const std::lock_guard lock{mutex_};
    faults_ = faults;
    ++fault_changes_;
  }
  EXPECT_TRUE(wait_until([&] { return applied_changes_ == fault_changes_; }))
      << "the thread does not apply the faults";
}

LinkFaults Forwarder::apply_faults() {
  const std::lock_guard lock{mutex_};
  applied_changes_ = fault_changes_.load();
  return faults_;
}

void Forwarder::run() {
  std::vector<std::unique_ptr<Relay>> relays;
  std::vector<pollfd> poll_requests;
  while (!is_stopping_) {
    const LinkFaults faults = apply_faults();
    if (faults.cut || break_all_.exchange(false)) {
      broken_ += relays.size();
      relays.clear();
    }
    const bool accepts = target_ != 0 && !faults.silent;
    poll_requests.assign({{listener_socket_, static_cast<short>(accepts ? POLLIN : 0), 0}});
    for (const auto& relay : relays)
      for (const pollfd& wait : relay->poll_requests(faults)) poll_requests.push_back(wait);
    // Waits at most 2 ms, so that delayed pieces are sent in time even if no bytes arrive.
    (void)::poll(poll_requests.data(), poll_requests.size(), 2);
    while (accepts) {
      const int client =
          ::accept4(listener_socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client < 0) break;
      const int server = faults.cut ? -1 : make_socket();
      const sockaddr_in address = loopback(target_);
      if (server < 0 ||
          (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
           errno != EINPROGRESS)) {
        ++refused_;
        reset(client);
        if (server >= 0) ::close(server);
        continue;
      }
      const int on = 1;
      for (const int side : {client, server})
        ::setsockopt(side, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++accepted_;
      relays.push_back(std::make_unique<Relay>(client, server));
    }
    std::erase_if(relays, [&](const auto& relay) { return !relay->relay_bytes(*this, faults); });
  }
}

std::uint16_t free_port() {
  std::uint16_t port = 0;
  ::close(listen_on_free_port(port));
  return port;
}

}  // namespace starling::hosts
