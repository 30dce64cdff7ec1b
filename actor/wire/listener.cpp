#include "starling/actor/wire/listener.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace starling::wire {
namespace {

constexpr int backlog = 4096;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// Returns the addresses of `host`; an empty `host` stands for every interface.
Result<Addresses> resolve(const std::string& host, const std::string& port, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int fault =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (fault != 0) return Error{::gai_strerror(fault)};
  return Addresses{found};
}

Result<int> listen_on(const addrinfo& address_info) {
  const int descriptor =
      ::socket(address_info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Error{std::strerror(errno)};
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // With IPV6_V6ONLY off, "every interface" includes IPv4.
  if (address_info.ai_family == AF_INET6)
    (void)::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(descriptor, address_info.ai_addr, address_info.ai_addrlen) == 0 &&
      ::listen(descriptor, backlog) == 0)
    return descriptor;
  const int fault = errno;
  ::close(descriptor);
  return Error{std::strerror(fault)};
}

/// Returns the address at which a socket listens, as tcp://IP:PORT; empty if the system fails.
std::string address_of(int descriptor) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const name = reinterpret_cast<sockaddr*>(&own);
  if (::getsockname(descriptor, name, &size) != 0 ||
      ::getnameinfo(name, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  const std::string host_text{host.data()};
  const bool is_v6 = own.ss_family == AF_INET6;
  return "tcp://" + (is_v6 ? "[" + host_text + "]" : host_text) + ":" + port.data();
}

}  // namespace

Result<Listener> open_listener(const std::string& address) {
  constexpr std::string_view scheme = "tcp://";
  const auto colon = address.rfind(':');
  if (!address.starts_with(scheme) || colon < scheme.size())
    return Error{"the text is not an address"};
  std::string host = address.substr(scheme.size(), colon - scheme.size());
  std::string port = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool is_every_interface = host == "*";
  if (is_every_interface) host.clear();
  if (port == "*") port = "0";
  Error fault{"the text is not an address"};
  // For host `*`, tries an IPv6 socket first, which accepts IPv4 too, and then, because the system
  // may lack IPv6, an IPv4 socket.
  for (const int family : {is_every_interface ? AF_INET6 : AF_UNSPEC, AF_INET}) {
    auto found = resolve(host, port, family);
    if (!found) {
      fault = std::move(found).error();
      continue;
    }
    for (const addrinfo* address_info = found->get(); address_info != nullptr;
         address_info = address_info->ai_next) {
      const auto descriptor = listen_on(*address_info);
      if (descriptor) return Listener{*descriptor, address_of(*descriptor)};
      fault = descriptor.error();
    }
  }
  return fault;
}

std::size_t descriptors_max() {
  rlimit limit{};
  constexpr std::size_t enough = std::size_t{1} << 20U;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > enough) return enough;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace starling::wire
