#include "starling/actor/wire/intake.hpp"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace starling::wire {
namespace {

/// After the process has grown.
constexpr std::chrono::seconds watch_for{10};
/// Linux's number of that state, which netinet/tcp.h has and linux/tcp.h has not.
constexpr std::uint8_t established = 1;

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

int port_of(const std::string& address) {
  int port = 0;
  const char* const end = address.data() + address.size();
  (void)std::from_chars(address.data() + address.rfind(':') + 1, end, port);
  return port;
}

/// Where the connection ends here; 0 where it is none.
int own_port(int descriptor) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  if (own.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port);
  if (own.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(own).sin6_port);
  return 0;
}

/// Nothing where it is no connection.
std::optional<std::uint64_t> bytes_received(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (info.tcpi_state != established) return std::nullopt;
  return info.tcpi_bytes_received;
}

}  // namespace

Intake::Intake(const std::string& address, std::size_t unfinished_bytes_max)
    : port_(port_of(address)),
      unfinished_bytes_max_(unfinished_bytes_max),
      calm_bytes_(resident_bytes()) {}

std::size_t Intake::look() {
  const auto now = Clock::now();
  if (now < next_look_) return 0;
  next_look_ = now + look_every;
  const std::size_t bytes = resident_bytes();
  if (bytes > calm_bytes_ + unfinished_bytes_max_ / 2) {
    calm_bytes_ = bytes;
    watches_until_ = now + watch_for;
  }
  calm_bytes_ = std::min(calm_bytes_, bytes);
  is_watching_ = now < watches_until_;
  for (auto& [descriptor, line] : lines_) line.is_there = false;
  if (is_watching_) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", none}) {
      const std::string name = entry.path().filename();
      int descriptor = -1;
      (void)std::from_chars(name.data(), name.data() + name.size(), descriptor);
      if (descriptor >= 0 && own_port(descriptor) == port_) update(descriptor);
    }
  }
  std::erase_if(lines_, [](const auto& line) { return !line.second.is_there; });
  delivered_.clear();
  return break_longest();
}

void Intake::update(int descriptor) {
  const auto received = bytes_received(descriptor);
  if (!received) return;
  const auto [at, is_new] = lines_.try_emplace(descriptor);
  Line& line = at->second;
  line.is_there = true;
  // A smaller number is another connection's.
  if (is_new || delivered_.contains(descriptor) || *received < line.received)
    line.at_delivery = *received;
  line.received = *received;
}

std::size_t Intake::break_longest() {
  std::uint64_t unfinished = 0;
  for (const auto& [descriptor, line] : lines_) unfinished += line.unfinished();
  std::size_t broken = 0;
  while (unfinished > unfinished_bytes_max_) {
    const auto longest = std::ranges::max_element(
        lines_, {}, [](const auto& line) { return line.second.unfinished(); });
    unfinished -= longest->second.unfinished();
    ::shutdown(longest->first, SHUT_RDWR);
    lines_.erase(longest);
    ++broken;
  }
  return broken;
}

}  // namespace starling::wire
