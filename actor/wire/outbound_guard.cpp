#include "starling/actor/wire/outbound_guard.hpp"

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "starling/base/memory.hpp"

namespace starling::wire {
namespace {

/// The growth in memory that makes it look. Parts without content take 32 times their bytes.
constexpr std::size_t growth_bytes = std::size_t{16} << 20U;

/// The address of the other end, as tcp://HOST:PORT; empty where there is no connection.
std::string other_end(int descriptor) {
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  auto* const name = reinterpret_cast<sockaddr*>(&other);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(descriptor, name, &size) != 0 ||
      (other.ss_family != AF_INET && other.ss_family != AF_INET6) ||
      ::getnameinfo(name, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  // ZeroMQ reaches IPv4 by IPv6.
  constexpr std::string_view mapped = "::ffff:";
  std::string figures{host.data()};
  if (figures.starts_with(mapped))
    figures.erase(0, mapped.size());
  else if (other.ss_family == AF_INET6)
    figures = "[" + figures + "]";
  return "tcp://" + figures + ":" + port.data();
}

/// The bytes that a connection has received; 0 where the descriptor is not one.
std::uint64_t bytes_received(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

OutboundGuard::OutboundGuard() : calm_bytes_(resident_bytes()) {}

std::size_t OutboundGuard::look(const std::function<bool(const std::string& address)>& is_ours) {
  const auto now = Clock::now();
  if (now < next_look_) return 0;
  next_look_ = now + look_every;
  const std::size_t bytes = resident_bytes();
  if (bytes < calm_bytes_ + growth_bytes) {
    calm_bytes_ = std::min(calm_bytes_, bytes);
    return 0;
  }
  calm_bytes_ = bytes;
  std::size_t broken = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", none}) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    (void)std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor < 0 || bytes_received(descriptor) <= received_bytes_max) continue;
    const std::string other = other_end(descriptor);
    if (other.empty() || !is_ours(other)) continue;
    ::shutdown(descriptor, SHUT_RDWR);
    ++broken;
  }
  return broken;
}

}  // namespace starling::wire
