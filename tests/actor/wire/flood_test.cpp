/// Tests that a transport takes bounded memory, and stays reachable, while unauthenticated peers
/// send bytes without end. Uses sockets on the loopback interface.
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
#include "tests/actor/wire/raw_connection.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20U;
/// The limit for the growth of the process in each test.
constexpr std::size_t growth_bytes_max = 128 * mib;

/// Measures by how many bytes this process grows at most, in samples every 2 ms.
class MemoryGrowth {
 public:
  MemoryGrowth() : before_(resident_bytes()), thread_([this] { sample(); }) {}
  ~MemoryGrowth() { end(); }
  MemoryGrowth(const MemoryGrowth&) = delete;
  MemoryGrowth& operator=(const MemoryGrowth&) = delete;

  /// Ends the measurement, and returns the largest growth since the object was made.
  std::size_t end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
#ifdef STARLING_SANITIZED
    return 0;  // AddressSanitizer keeps freed memory for a while, also that of this test's strings
#else
    return largest_ - std::min(largest_, before_);
#endif
  }

 private:
  void sample() {
    while (!ends_) {
      largest_ = std::max(largest_, resident_bytes());
      std::this_thread::sleep_for(2ms);
    }
  }
  const std::size_t before_;
  std::size_t largest_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Flood : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      options_.keys = make_key_pair();
      options_.admits = [](const Key&) { return true; };
    }
    open();
  }
  void open() {
    auto opened = Transport::open(options_, [this](const IncomingFrame&) { ++received_; });
    ASSERT_TRUE(opened) << opened.error().message;
    transport_ = *std::move(opened);
  }
  [[nodiscard]] const std::string& address() const { return transport_->address(); }

  /// Returns true if a frame of an admitted peer is received.
  bool is_reachable() {
    TransportOptions options;
    if (options_.keys) options.keys = make_key_pair();
    const auto admitted = Transport::open(options, [](const IncomingFrame&) {});
    const int before = received_;
    std::optional<Key> key;
    if (options_.keys) key = options_.keys->public_key;
    (*admitted)->send({address(), key}, TrafficClass::control, encode(1, 1, core::Envelope{}));
    return wait_until([&] { return received_ > before; });
  }

  /// Waits until the size of the process stays the same for 200 ms. The transport has then read all
  /// bytes that waited in the system. Returns false if that takes too long.
  [[nodiscard]] static bool has_read_all() {
    std::size_t before = 0;
    int equal_samples = 0;
    return wait_until([&] {
      std::this_thread::sleep_for(20ms);
      const std::size_t bytes = resident_bytes();
      equal_samples = bytes / mib == before / mib ? equal_samples + 1 : 0;
      before = bytes;
      return equal_samples == 10;
    });
  }

  TransportOptions options_;
  std::unique_ptr<Transport> transport_;
  std::atomic<int> received_ = 0;
};

class PlainFlood : public Flood {};
class KeyedFlood : public Flood {};

/// Each of these parts has two bytes on the wire, but would take 64 bytes if it were kept in
/// memory.
TEST_P(PlainFlood, EmptyPartsTakeNoMemory) {
  std::string parts;
  while (parts.size() < mib) parts += "\1\0"s;
  MemoryGrowth growth;
  for (std::size_t sent = 0; sent < 12 * mib;) {
    RawConnection connection{address()};
    (void)connection.send(greeting("NULL") + ready);
    const std::size_t taken = connection.send(parts, 2s);
    sent += std::max(taken, mib);
    EXPECT_TRUE(connection.closes_within(10s));
  }
  EXPECT_LT(growth.end(), growth_bytes_max);
  EXPECT_TRUE(is_reachable());
}

TEST_P(PlainFlood, AnnouncedPartsTakeBoundedMemory) {
  const std::string part_begin(mib, 'x');
  MemoryGrowth growth;
  std::vector<RawConnection> connections;
  for (int i = 0; i < 300; ++i) {
    connections.emplace_back(address());
    (void)connections.back().send(greeting("NULL") + ready +
                                  (i % 2 == 0 ? announced_part : announced_end) + part_begin);
  }
  EXPECT_TRUE(has_read_all());
  EXPECT_LT(growth.end(), growth_bytes_max);
  EXPECT_TRUE(is_reachable());
}

TEST_P(KeyedFlood, AnnouncedCommandsTakeNoMemory) {
  const std::string part_begin(mib, 'x');
  MemoryGrowth growth;
  std::vector<RawConnection> connections;
  for (int i = 0; i < 300; ++i) {
    connections.emplace_back(address());
    (void)connections.back().send(greeting("CURVE") + announced_command + part_begin, 1s);
  }
  EXPECT_TRUE(has_read_all());
  EXPECT_LT(growth.end(), growth_bytes_max / 8);
  for (RawConnection& connection : connections) EXPECT_TRUE(connection.closes_within(10s));
  EXPECT_TRUE(is_reachable());
}

TEST_P(Flood, SlowHandshakesDoNotKeepOthersOut) {
  MemoryGrowth growth;
  std::vector<RawConnection> connections;
  for (int i = 0; i < 400; ++i) {
    connections.emplace_back(address());
    if (i % 2 == 0) (void)connections.back().send(greeting("CURVE").substr(0, 1 + i % 64));
  }
  EXPECT_TRUE(is_reachable());
  for (RawConnection& connection : connections) EXPECT_TRUE(connection.closes_within(10s));
  EXPECT_LT(growth.end(), growth_bytes_max / 4);
}

/// Limits the number of file descriptors of this process while the object exists.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// The transport is opened with a low limit of descriptors. The clients are opened after the limit
/// was restored.
TEST_P(Flood, ConnectionsLeaveDescriptorsForOthers) {
  transport_.reset();
  {
    const DescriptorLimit few{200};
    open();
  }
  std::vector<RawConnection> connections;
  for (int i = 0; i < 400; ++i) connections.emplace_back(address());
  EXPECT_TRUE(is_reachable());
  const auto count_open = [&] {
    return std::ranges::count_if(
        connections, [](RawConnection& connection) { return !connection.closes_within(0ms); });
  };
  // Handshakes may use a quarter of the descriptors.
  EXPECT_LE(count_open(), 50);
}

/// Connections that have sent no frame yet are closed first.
TEST_P(PlainFlood, SilentConnectionsAreClosedFirst) {
  transport_.reset();
  options_.inbound_max = 20;
  open();
  RawConnection used{address()};
  const std::string frame = "\1\1x\0\1y"s;
  (void)used.send(greeting("NULL") + ready + frame);
  ASSERT_TRUE(wait_until([&] { return received_ > 0; })) << "the first frame is not received";
  std::vector<RawConnection> connections;
  for (int i = 0; i < 100; ++i) {
    connections.emplace_back(address());
    (void)connections.back().send(greeting("NULL") + ready);
  }
  for (int i = 0; i < 79; ++i)
    EXPECT_TRUE(connections[static_cast<std::size_t>(i)].closes_within(10s));
  EXPECT_TRUE(is_reachable());
  const int before = received_;
  (void)used.send(frame);
  EXPECT_TRUE(wait_until([&] { return received_ > before; }))
      << "the connection that has sent a frame was closed";
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
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      const timeval brief{0, 100'000};
      ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
      const std::string hello = greeting("NULL") + "\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER"s;
      (void)::send(connection, hello.data(), hello.size(), MSG_NOSIGNAL);
      for (ssize_t taken = 0; !ends_ && taken >= 0;) {
        taken = ::send(connection, parts.data(), parts.size(), MSG_NOSIGNAL);
        if (taken > 0) sent += static_cast<std::size_t>(taken);
        // Sends slowly enough to leave the processors to other tests.
        std::this_thread::sleep_for(10ms);
      }
      ::close(connection);
    }
  }

  const int listener_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

/// The transport may stop reading the parts, or close the connection each time.
TEST_P(PlainFlood, AnswersOfAServerTakeBoundedMemory) {
  constexpr auto stalled_after = 5s;
  HostileServer hostile;
  MemoryGrowth growth;
  std::size_t before = 0;
  auto last_sent_at = Clock::now();
  const auto give_up = last_sent_at + 30s;
  while (hostile.sent < 5 * mib && Clock::now() < std::min(give_up, last_sent_at + stalled_after)) {
    transport_->send({hostile.address, std::nullopt}, TrafficClass::control,
                     encode(1, 1, core::Envelope{}));
    std::this_thread::sleep_for(10ms);
    if (const std::size_t sent = hostile.sent; std::exchange(before, sent) < sent)
      last_sent_at = Clock::now();
  }
  EXPECT_GT(hostile.sent, 0U);
  EXPECT_LT(growth.end(), growth_bytes_max);
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
