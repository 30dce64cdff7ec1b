/// Tests transports with sockets on the loopback interface. transport_unauthenticated_test.cpp has
/// the tests with unauthenticated senders.
#include "starling/actor/wire/transport.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/actor/wire/examples.hpp"
#include "tests/actor/wire/raw_connection.hpp"
#include "tests/actor/wire/test_node.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;

TEST(Transport, DeliversFramesOfOneClassInOrder) {
  TestNode from;
  TestNode to;
  constexpr std::uint64_t count = 500;
  for (std::uint64_t i = 1; i <= count; ++i)
    from.transport->send(to.peer(), TrafficClass::data, numbered_frame(i, i % 7 == 0 ? 20000 : 0));
  ASSERT_TRUE(to.wait_for(count));
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(to.packets[i], i + 1);
  EXPECT_EQ(from.transport->counts().dropped, 0U);
}

std::size_t size_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

/// Small frames are sent in packs, and long frames between them alone. The receiver gets the same
/// frames.
TEST(Transport, DeliversPackedFramesLikeSingleOnes) {
  TestNode from{with_keys()};
  TestNode to{with_keys()};
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(1));
  std::vector<Frame> frames;
  std::size_t bytes = size_of(numbered_frame(1));
  constexpr std::uint64_t count = 300;
  for (std::uint64_t i = 2; i <= count; ++i) {
    frames.push_back(numbered_frame(i, i % 50 == 0 ? 20000 : i % 3 * 500));
    bytes += size_of(frames.back());
  }
  from.transport->send(to.peer(), TrafficClass::data, frames);
  ASSERT_TRUE(to.wait_for(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(to.packets[i], i + 1);
    EXPECT_EQ(to.senders[i], from.key);
  }
  EXPECT_EQ(to.bytes, bytes);
  EXPECT_EQ(to.refused, 0);
  EXPECT_EQ(from.transport->counts().sent, count);
  EXPECT_EQ(to.transport->counts().received, count);
}

/// Without encryption, long frames are sent together, no matter if their bodies are contiguous.
TEST(Transport, DeliversJoinedLongFramesLikeSingleOnes) {
  constexpr std::size_t length = 40'000;
  std::vector<float> all(30 * length);
  std::iota(all.begin(), all.end(), 0.0F);
  const auto part = [&](std::size_t i) { return std::span{all}.subspan(i * length, length); };
  for (const bool is_contiguous : {true, false})
    for (const bool is_encrypted : {false, true}) {
      TestNode from{is_encrypted ? with_keys() : TransportOptions{}};
      TestNode to{is_encrypted ? with_keys() : TransportOptions{}};
      from.transport->send(to.peer(), TrafficClass::data, numbered_frame(0, 1));  // connects
      ASSERT_TRUE(to.wait_for(1));
      std::vector<Frame> frames;
      core::Slice piece = slice_of<float>(all);
      for (std::size_t i = 0; i < 30; ++i) {
        piece.offset = i * length;
        piece.count = length;
        frames.push_back(numbered_frame(
            i + 1, is_contiguous ? piece : slice_of<float>({part(i).begin(), part(i).end()})));
      }
      from.transport->send(to.peer(), TrafficClass::data, frames);
      ASSERT_TRUE(to.wait_for(31));
      for (std::size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(to.packets[i + 1], i + 1);
        EXPECT_TRUE(std::ranges::equal(to.floats[i + 1], part(i))) << i;
      }
      EXPECT_EQ(to.refused, 0);
    }
}

TEST(Transport, DeliversControlWhileDataWaits) {
  TestNode from;
  TestNode to;
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(1));
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(2));
  ASSERT_TRUE(to.wait_for(2));
  to.pause = 1ms;
  {
    // The receiver handles no frame before all are sent.
    const std::lock_guard held{to.receiving};
    for (std::uint64_t i = 1; i <= 100; ++i)
      from.transport->send(to.peer(), TrafficClass::data, numbered_frame(i, 65536));
    for (std::uint64_t i = 1001; i <= 1010; ++i)
      from.transport->send(to.peer(), TrafficClass::control, numbered_frame(i));
  }
  ASSERT_TRUE(to.wait_for(112));
  const auto last = std::ranges::find(to.packets, 1010U);
  EXPECT_LT(last - to.packets.begin(), 50);
}

TEST(Transport, DropsFramesBeyondTheQueueBound) {
  TransportOptions options;
  options.queue_bytes_max = 1 << 20U;
  TestNode from{options};
  const Peer nobody{"tcp://127.0.0.1:1", std::nullopt};
  for (std::uint64_t i = 1; i <= 100; ++i)
    from.transport->send(nobody, TrafficClass::data, numbered_frame(i, 65536));
  TestNode to;
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(from.transport->counts().dropped, 97U);
}

TEST(Transport, ReachesAPeerThatHasRestarted) {
  TestNode from;
  TransportOptions options;
  std::string address;
  {
    const TestNode to;
    address = to.transport->address();
  }
  from.transport->send({address, std::nullopt}, TrafficClass::control, numbered_frame(1));
  options.listen = address;
  TestNode again{options};
  EXPECT_TRUE(again.wait_for(1));
}

TEST(Transport, KnowsTheSendersKey) {
  TestNode from{with_keys()};
  TestNode to{with_keys()};
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(1, 70000));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.senders[0], from.key);
}

/// A listener that accepts one connection, and sends nothing but its side of the handshake.
class SilentPeer {
 public:
  SilentPeer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    peer_.address = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  ~SilentPeer() {
    ::close(connection_);
    ::close(listener_);
  }
  SilentPeer(const SilentPeer&) = delete;
  SilentPeer& operator=(const SilentPeer&) = delete;

  /// Lets `from` send a frame to this peer, and accepts its first connection.
  void receive_from(TestNode& from) {
    from.transport->send(peer_, TrafficClass::control, numbered_frame(1));
    if (connection_ >= 0) return;
    connection_ = ::accept(listener_, nullptr, nullptr);
    const std::string hello =
        greeting("NULL") + literal("\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER");
    EXPECT_EQ(::send(connection_, hello.data(), hello.size(), MSG_NOSIGNAL), std::ssize(hello));
  }
  [[nodiscard]] bool is_closed() const {
    std::array<char, 4096> bytes{};
    ssize_t count = 1;
    while (count > 0) count = ::recv(connection_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count == 0 || errno == ECONNRESET;
  }

 private:
  Peer peer_;
  int listener_;
  int connection_ = -1;
};

TEST(Transport, ClosesTheLeastRecentlyUsedPeer) {
  TransportOptions options;
  options.peers_max = 2;
  TestNode from{options};
  SilentPeer first;
  SilentPeer second;
  SilentPeer third;
  for (SilentPeer* to : {&first, &second, &first, &third}) to->receive_from(from);
  EXPECT_TRUE(wait_until([&] { return second.is_closed(); }));
  EXPECT_FALSE(first.is_closed());
  EXPECT_FALSE(third.is_closed());
  second.receive_from(from);
  EXPECT_TRUE(wait_until([&] { return first.is_closed(); }));
  EXPECT_FALSE(third.is_closed());
}

TEST(Transport, FailsToListenAtAnUnusableAddress) {
  const TestNode taken;
  for (const std::string& address :
       {taken.transport->address(), std::string{"tcp://192.0.2.1:5"}, std::string{"nonsense"}}) {
    TransportOptions options;
    options.listen = address;
    const auto opened = Transport::open(options, [](const IncomingFrame&) {});
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("cannot listen at " + address + ": "), std::string::npos);
  }
}

}  // namespace
}  // namespace starling::wire
