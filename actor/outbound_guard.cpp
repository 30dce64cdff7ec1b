#include "starling/actor/outbound_guard.hpp"

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

/// The connections are examined only if this process's memory has grown by this much. (A message
/// part without content takes 32 times as many bytes in ZeroMQ's memory as it has on the wire.)
constexpr std::size_t growth_bytes = std::size_t{16} << 20U;

/// Returns the address of the peer, as tcp://IP:PORT; empty if the descriptor is not a connection.
std::string remote_address(int descriptor) {
  sockaddr_storage remote{};
  socklen_t size = sizeof remote;
  auto* const name = reinterpret_cast<sockaddr*>(&remote);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(descriptor, name, &size) != 0 ||
      (remote.ss_family != AF_INET && remote.ss_family != AF_INET6) ||
      ::getnameinfo(name, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  // ZeroMQ uses IPv6 sockets for IPv4 too, with mapped addresses.
  constexpr std::string_view mapped = "::ffff:";
  std::string host_text{host.data()};
  if (host_text.starts_with(mapped))
    host_text.erase(0, mapped.size());
  else if (remote.ss_family == AF_INET6)
    host_text = "[" + host_text + "]";
  return "tcp://" + host_text + ":" + port.data();
}

/// Returns the number of bytes that a connection has received; 0 if the descriptor is not a TCP
/// connection.
std::uint64_t bytes_received(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

OutboundGuard::OutboundGuard() : baseline_bytes_(resident_bytes()) {}

std::size_t OutboundGuard::check(
    const std::function<bool(const std::string& address)>& is_remote_node) {
  const auto now = Clock::now();
  if (now < next_check_at_) return 0;
  next_check_at_ = now + check_every;
  const std::size_t bytes = resident_bytes();
  if (bytes < baseline_bytes_ + growth_bytes) {
    baseline_bytes_ = std::min(baseline_bytes_, bytes);
    return 0;
  }
  baseline_bytes_ = bytes;
  std::size_t closed = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    (void)std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor < 0 || bytes_received(descriptor) <= received_bytes_max) continue;
    const std::string remote = remote_address(descriptor);
    if (remote.empty() || !is_remote_node(remote)) continue;
    ::shutdown(descriptor, SHUT_RDWR);
    ++closed;
  }
  return closed;
}

}  // namespace starling::wire
