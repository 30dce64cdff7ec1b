/// A connection to a transport, made by hand, and the bytes that a client of ZMTP sends on it (RFC
/// 37).
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace starling::wire {

/// With the zeros in it.
template <std::size_t N>
std::string literal(const char (&text)[N]) {
  return {text, N - 1};
}

/// RFC 37: the greeting of a client, and READY of a DEALER.
inline std::string greeting(const std::string& mechanism) {
  std::string bytes = literal("\xff\0\0\0\0\0\0\0\1\x7f\3\0") + mechanism;
  bytes.resize(64, '\0');
  return bytes;
}
inline const std::string ready = literal("\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER");
/// A part, a last part or a command of 8 MiB to come.
inline const std::string announced_part = literal("\3\0\0\0\0\0\x80\0\0");
inline const std::string announced_end = literal("\2\0\0\0\0\0\x80\0\0");
inline const std::string announced_command = literal("\6\0\0\0\0\0\x80\0\0");

class Line {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Line(const std::string& address) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    (void)::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  }
  ~Line() { ::close(descriptor_); }
  Line(Line&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Line& operator=(Line&&) = delete;

  /// Sends as much as is taken within `time`; how much that was.
  [[nodiscard]] std::size_t send(std::string_view bytes,
                                 std::chrono::milliseconds time = std::chrono::seconds{5}) {
    std::size_t sent = 0;
    for (const auto end = Clock::now() + time; sent < bytes.size() && Clock::now() < end;) {
      const auto taken =
          ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (taken > 0) {
        sent += static_cast<std::size_t>(taken);
      } else if (errno == EAGAIN) {
        pollfd item{descriptor_, POLLOUT, 0};
        (void)::poll(&item, 1, 10);
      } else {
        break;
      }
    }
    return sent;
  }
  /// Whether the other end has ended it by then.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds time) {
    std::array<char, 256> taken{};
    for (const auto end = Clock::now() + time;;) {
      const auto received = ::recv(descriptor_, taken.data(), taken.size(), 0);
      if (received == 0 || (received < 0 && errno != EAGAIN)) return true;
      if (Clock::now() >= end) return false;
      pollfd item{descriptor_, POLLIN, 0};
      if (received < 0) (void)::poll(&item, 1, 10);
    }
  }

 private:
  int descriptor_;
};

}  // namespace starling::wire
