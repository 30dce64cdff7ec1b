/// Unauthenticated peers that send bytes without an end, and how much of them a transport holds.
/// Real sockets on the loopback interface.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/wire/transport.hpp"
#include "starling/base/memory.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/actor/wire/line.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20U;
/// Bytes that any flood may make a process grow by, at any moment.
constexpr std::size_t growth_max = 128 * mib;

/// The most that this process has grown since it was made, looked at every 2 ms.
class Growth {
 public:
  Growth() : before_(resident_bytes()), thread_([this] { look(); }) {}
  ~Growth() { end(); }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  std::size_t end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
#ifdef STARLING_SANITIZED
    return 0;  // AddressSanitizer keeps what is freed for a while, the test's own strings too
#else
    return most_ - std::min(most_, before_);
#endif
  }

 private:
  void look() {
    while (!ends_) {
      most_ = std::max(most_, resident_bytes());
      std::this_thread::sleep_for(2ms);
    }
  }
  const std::size_t before_;
  std::size_t most_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Flood : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      options_.keys = make_keys();
      options_.admits = [](const Key&) { return true; };
    }
    open();
  }
  void open() {
    auto opened = Transport::open(options_, [this](const Incoming&) { ++came_; });
    ASSERT_TRUE(opened) << opened.error().message;
    transport_ = *std::move(opened);
  }
  [[nodiscard]] const std::string& address() const { return transport_->address(); }

  /// Whether an admitted peer gets a frame through.
  bool is_reachable() {
    TransportOptions options;
    if (options_.keys) options.keys = make_keys();
    const auto friendly = Transport::open(options, [](const Incoming&) {});
    const int before = came_;
    std::optional<Key> key;
    if (options_.keys) key = options_.keys->public_key;
    (*friendly)->send({address(), key}, TrafficClass::control, encode(1, 1, core::Envelope{}));
    return wait_until([&] { return came_ > before; });
  }

  /// Whether the process comes to neither grow nor shrink any more: what waited with the system is
  /// taken then.
  [[nodiscard]] static bool reads_all() {
    std::size_t before = 0;
    int calm = 0;
    return wait_until([&] {
      std::this_thread::sleep_for(20ms);
      const std::size_t bytes = resident_bytes();
      calm = bytes / mib == before / mib ? calm + 1 : 0;
      before = bytes;
      return calm == 10;
    });
  }

  TransportOptions options_;
  std::unique_ptr<Transport> transport_;
  std::atomic<int> came_ = 0;
};

class PlainFlood : public Flood {};
class KeyedFlood : public Flood {};

/// Two bytes on the wire were 64 of memory each.
TEST_P(PlainFlood, OfEmptyPartsTakesNoMemory) {
  std::string parts;
  while (parts.size() < mib) parts += "\1\0"s;
  Growth growth;
  for (std::size_t sent = 0; sent < 12 * mib;) {
    Line line{address()};
    (void)line.send(greeting("NULL") + ready);
    const std::size_t taken = line.send(parts, 2s);
    sent += std::max(taken, mib);
    EXPECT_TRUE(line.ends_within(10s));
  }
  EXPECT_LT(growth.end(), growth_max);
  EXPECT_TRUE(is_reachable());
}

TEST_P(PlainFlood, OfAnnouncedPartsTakesBoundedMemory) {
  const std::string some(mib, 'x');
  Growth growth;
  std::vector<Line> lines;
  for (int i = 0; i < 300; ++i) {
    lines.emplace_back(address());
    (void)lines.back().send(greeting("NULL") + ready +
                            (i % 2 == 0 ? announced_part : announced_end) + some);
  }
  EXPECT_TRUE(reads_all());
  EXPECT_LT(growth.end(), growth_max);
  EXPECT_TRUE(is_reachable());
}

TEST_P(KeyedFlood, OfAnnouncedCommandsTakesNoMemory) {
  const std::string some(mib, 'x');
  Growth growth;
  std::vector<Line> lines;
  for (int i = 0; i < 300; ++i) {
    lines.emplace_back(address());
    (void)lines.back().send(greeting("CURVE") + announced_command + some, 1s);
  }
  EXPECT_TRUE(reads_all());
  EXPECT_LT(growth.end(), growth_max / 8);
  for (Line& line : lines) EXPECT_TRUE(line.ends_within(10s));
  EXPECT_TRUE(is_reachable());
}

TEST_P(Flood, OfSlowHandshakesKeepsNobodyOut) {
  Growth growth;
  std::vector<Line> lines;
  for (int i = 0; i < 400; ++i) {
    lines.emplace_back(address());
    if (i % 2 == 0) (void)lines.back().send(greeting("CURVE").substr(0, 1 + i % 64));
  }
  EXPECT_TRUE(is_reachable());
  for (Line& line : lines) EXPECT_TRUE(line.ends_within(10s));
  EXPECT_LT(growth.end(), growth_max / 4);
}

/// Restores what this process may have.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// Clients have descriptors of their own.
TEST_P(Flood, OfConnectionsLeavesDescriptorsForOthers) {
  transport_.reset();
  {
    const FewDescriptors few{200};
    open();
  }
  std::vector<Line> lines;
  for (int i = 0; i < 400; ++i) lines.emplace_back(address());
  EXPECT_TRUE(is_reachable());
  const auto standing = [&] {
    return std::ranges::count_if(lines, [](Line& line) { return !line.ends_within(0ms); });
  };
  // A quarter of the descriptors is for handshakes.
  EXPECT_LE(standing(), 50);
}

/// Connections that have brought no frame yet are ended first.
TEST_P(PlainFlood, OfOpenConnectionsEndsThoseThatSayNothing) {
  transport_.reset();
  options_.inbound_max = 20;
  open();
  Line known{address()};
  const std::string frame = "\1\1x\0\1y"s;
  (void)known.send(greeting("NULL") + ready + frame);
  ASSERT_TRUE(wait_until([&] { return came_ > 0; })) << "its first frame comes";
  std::vector<Line> lines;
  for (int i = 0; i < 100; ++i) {
    lines.emplace_back(address());
    (void)lines.back().send(greeting("NULL") + ready);
  }
  for (int i = 0; i < 79; ++i) EXPECT_TRUE(lines[static_cast<std::size_t>(i)].ends_within(10s));
  EXPECT_TRUE(is_reachable());
  const int before = came_;
  (void)known.send(frame);
  EXPECT_TRUE(wait_until([&] { return came_ > before; })) << "the known connection stands";
}

/// A listener that answers every connection with message parts without an end.
class HostileServer {
 public:
  HostileServer() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    (void)::bind(listener_, reinterpret_cast<sockaddr*>(&own), size);
    (void)::listen(listener_, 16);
    (void)::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
    address = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    thread_ = std::thread{[this] { run(); }};
  }
  ~HostileServer() {
    ends_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  std::string address;
  std::atomic<std::size_t> sent = 0;

 private:
  void run() {
    std::string parts;
    while (parts.size() < mib / 4) parts += "\1\0"s;
    while (!ends_) {
      const int line = ::accept(listener_, nullptr, nullptr);
      if (line < 0) continue;
      const timeval brief{0, 100'000};
      ::setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
      const std::string hello = greeting("NULL") + "\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER"s;
      (void)::send(line, hello.data(), hello.size(), MSG_NOSIGNAL);
      for (ssize_t taken = 0; !ends_ && taken >= 0;) {
        taken = ::send(line, parts.data(), parts.size(), MSG_NOSIGNAL);
        if (taken > 0) sent += static_cast<std::size_t>(taken);
        // So fast that other tests' processors are left to them.
        std::this_thread::sleep_for(10ms);
      }
      ::close(line);
    }
  }

  const int listener_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

/// Either ZeroMQ takes no more of them, or the connection is broken again and again.
TEST_P(PlainFlood, OfAnswersTakesBoundedMemory) {
  constexpr auto stands_after = 5s;
  HostileServer hostile;
  Growth growth;
  std::size_t before = 0;
  auto grown = Clock::now();
  const auto give_up = grown + 30s;
  while (hostile.sent < 5 * mib && Clock::now() < std::min(give_up, grown + stands_after)) {
    transport_->send({hostile.address, std::nullopt}, TrafficClass::control,
                     encode(1, 1, core::Envelope{}));
    std::this_thread::sleep_for(10ms);
    if (const std::size_t sent = hostile.sent; std::exchange(before, sent) < sent)
      grown = Clock::now();
  }
  EXPECT_GT(hostile.sent, 0U);
  EXPECT_LT(growth.end(), growth_max);
  EXPECT_TRUE(is_reachable());
}

std::string name_of(const testing::TestParamInfo<bool>& keyed) {
  return keyed.param ? "Keyed" : "Plain";
}
INSTANTIATE_TEST_SUITE_P(Nodes, Flood, testing::Bool(), name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, PlainFlood, testing::Values(false), name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, KeyedFlood, testing::Values(true), name_of);

}  // namespace
}  // namespace starling::wire
