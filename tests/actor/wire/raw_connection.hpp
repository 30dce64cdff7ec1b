/// A TCP connection to a transport, and the bytes that a ZMTP client (RFC 37) sends on it. For
/// tests with clients that violate the protocol.
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

/// Returns the text of a literal, including zeros in it.
template <std::size_t N>
std::string literal(const char (&text)[N]) {
  return {text, N - 1};
}

/// Returns the greeting of a client with a security mechanism, such as NULL.
inline std::string greeting(const std::string& mechanism) {
  std::string bytes = literal("\xff\0\0\0\0\0\0\0\1\x7f\3\0") + mechanism;
  bytes.resize(64, '\0');
  return bytes;
}
/// The READY command of a DEALER.
inline const std::string ready = literal("\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER");
/// The headers that announce 8 MiB: of a message part that others follow, of a last part, and of a
/// command.
inline const std::string announced_part = literal("\3\0\0\0\0\0\x80\0\0");
inline const std::string announced_end = literal("\2\0\0\0\0\0\x80\0\0");
inline const std::string announced_command = literal("\6\0\0\0\0\0\x80\0\0");

class RawConnection {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RawConnection(const std::string& address)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    (void)::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  }
  ~RawConnection() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RawConnection(RawConnection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawConnection& operator=(RawConnection&&) = delete;

  /// Sends for at most `time`. Returns the number of bytes that the system has accepted.
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
  /// Ends the connection with a TCP reset. The other end drops the bytes that it has not read.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    (void)::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(descriptor_, -1));
  }
  /// Returns true if the other end closes the connection within `time`. Drops what it sends.
  [[nodiscard]] bool closes_within(std::chrono::milliseconds time) {
    std::array<char, 256> dropped{};
    for (const auto end = Clock::now() + time;;) {
      const auto received = ::recv(descriptor_, dropped.data(), dropped.size(), 0);
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
