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

constexpr std::size_t piece_bytes = std::size_t{16} << 10U;
/// The most bytes that it holds of one direction of one connection; beyond, senders wait.
constexpr std::size_t held_bytes_max = std::size_t{1} << 20U;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/// A socket that listens at a free port.
int listen_somewhere(std::uint16_t& port) {
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

/// Whether what has just failed may yet go well.
bool is_only_late() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS || errno == ENOTCONN;
}

/// Ends a connection as a machine does that knows nothing of it.
void reset(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

}  // namespace

/// One connection: the bytes that came from either side and have not reached the other.
class Forwarder::Relay {
 public:
  Relay(int near, int far) : sides_{near, far} {}
  ~Relay() {
    for (const int side : sides_) reset(side);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::array<pollfd, 2> waits(const Weather& weather) const {
    std::array<pollfd, 2> all{};
    for (std::size_t i = 0; i < 2; ++i) {
      const bool takes = !weather.silent && ways_[i].bytes < held_bytes_max && !ways_[i].over;
      const auto& other = ways_[1 - i];
      const bool gives = !weather.silent && is_due(other);
      all[i] = {sides_[i], static_cast<short>((takes ? POLLIN : 0) | (gives ? POLLOUT : 0)), 0};
    }
    return all;
  }

  /// False where the connection is at its end.
  bool move(Forwarder& all, const Weather& weather) {
    if (weather.silent) return true;
    for (std::size_t i = 0; i < 2; ++i)
      if (!take(all, weather, i) || !give(weather, i)) return false;
    return !(ways_[0].over && ways_[1].over);
  }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    Clock::time_point due;
  };
  struct Way {
    std::deque<Piece> pieces;
    std::size_t bytes = 0;
    Clock::time_point last_due;
    Clock::time_point free_at;
    /// Its sender has sent all.
    bool over = false;
  };

  static bool is_due(const Way& way) {
    return !way.pieces.empty() && std::max(way.pieces.front().due, way.free_at) <= Clock::now();
  }

  bool take(Forwarder& all, const Weather& weather, std::size_t from) {
    Way& way = ways_[from];
    while (way.bytes < held_bytes_max && !way.over) {
      std::vector<std::byte> bytes(piece_bytes);
      const auto got = ::recv(sides_[from], bytes.data(), bytes.size(), 0);
      if (got < 0) return is_only_late();
      if (got == 0) {
        way.over = true;
        break;
      }
      bytes.resize(static_cast<std::size_t>(got));
      const auto happens = [&](double share) {
        return share > 0 && std::uniform_real_distribution<>{0, 1}(all.random_) < share;
      };
      if (happens(weather.breaking)) {
        ++all.broken_;
        return false;
      }
      if (happens(weather.damaging)) {
        ++all.damaged_;
        bytes[all.random_() % bytes.size()] ^= std::byte{16};
      }
      auto due = Clock::now() + weather.delay;
      if (weather.jitter > 0ms)
        due += std::chrono::microseconds{
            all.random_() %
            static_cast<std::uint64_t>(std::chrono::microseconds{weather.jitter}.count())};
      way.last_due = std::max(way.last_due, due);
      way.bytes += bytes.size();
      all.bytes_ += bytes.size();
      way.pieces.push_back({std::move(bytes), way.last_due});
    }
    return true;
  }

  bool give(const Weather& weather, std::size_t from) {
    Way& way = ways_[from];
    while (is_due(way)) {
      Piece& piece = way.pieces.front();
      const auto sent =
          ::send(sides_[1 - from], piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return is_only_late();
      const auto count = static_cast<std::size_t>(sent);
      way.bytes -= count;
      if (weather.bytes_per_s > 0)
        way.free_at = std::max(way.free_at, Clock::now()) +
                      std::chrono::nanoseconds{1'000'000'000 * count / weather.bytes_per_s};
      piece.bytes.erase(piece.bytes.begin(), piece.bytes.begin() + sent);
      if (piece.bytes.empty()) way.pieces.pop_front();
    }
    if (way.over && way.pieces.empty()) ::shutdown(sides_[1 - from], SHUT_WR);
    return true;
  }

  std::array<int, 2> sides_;
  /// By sending side.
  std::array<Way, 2> ways_;
};

Forwarder::Forwarder(std::uint64_t seed)
    : listening_(listen_somewhere(port_)), random_(seed), thread_([this] { run(); }) {}

Forwarder::~Forwarder() {
  stopping_ = true;
  thread_.join();
  ::close(listening_);
}

void Forwarder::set(const Weather& weather) {
  {
    const std::lock_guard lock{mutex_};
    weather_ = weather;
    ++changes_;
  }
  EXPECT_TRUE(wait_until([&] { return seen_ == changes_; })) << "the thread sees it";
}

Weather Forwarder::look() {
  const std::lock_guard lock{mutex_};
  seen_ = changes_.load();
  return weather_;
}

void Forwarder::run() {
  std::vector<std::unique_ptr<Relay>> relays;
  std::vector<pollfd> waits;
  while (!stopping_) {
    const Weather now = look();
    if (now.cut || break_all_.exchange(false)) {
      broken_ += relays.size();
      relays.clear();
    }
    const bool takes = target_ != 0 && !now.silent;
    waits.assign({{listening_, static_cast<short>(takes ? POLLIN : 0), 0}});
    for (const auto& relay : relays)
      for (const pollfd& wait : relay->waits(now)) waits.push_back(wait);
    // Waits at most 2 ms, so that delayed pieces leave in time even where nothing comes.
    (void)::poll(waits.data(), waits.size(), 2);
    while (takes) {
      const int near = ::accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (near < 0) break;
      const int far = now.cut ? -1 : make_socket();
      const sockaddr_in address = loopback(target_);
      if (far < 0 ||
          (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
           errno != EINPROGRESS)) {
        ++refused_;
        reset(near);
        if (far >= 0) ::close(far);
        continue;
      }
      const int on = 1;
      for (const int side : {near, far})
        ::setsockopt(side, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++taken_;
      relays.push_back(std::make_unique<Relay>(near, far));
    }
    std::erase_if(relays, [&](const auto& relay) { return !relay->move(*this, now); });
  }
}

std::uint16_t free_port() {
  std::uint16_t port = 0;
  ::close(listen_somewhere(port));
  return port;
}

}  // namespace starling::hosts
