/// Tests transports that receive from clients that are not admitted, speak another protocol, or
/// send broken messages. Uses sockets on the loopback interface.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "tests/actor/wire/raw_connection.hpp"
#include "tests/actor/wire/test_node.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

/// Waits until the node's count of refusals is above `before`. Returns false if that takes too
/// long.
[[nodiscard]] bool refuses_more(const TestNode& node, std::uint64_t before) {
  return wait_until([&] { return node.transport->counts().refused > before; });
}

TEST(Transport, RefusesKeysThatAreNotAdmitted) {
  const auto admitted_options = with_keys();
  TestNode to{with_keys([&](const Key& key) { return key == admitted_options.keys->public_key; })};
  TestNode unadmitted{with_keys()};
  unadmitted.transport->send(to.peer(), TrafficClass::control, numbered_frame(66));
  ASSERT_TRUE(refuses_more(to, 0));
  TestNode from{admitted_options};
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

TEST(Transport, RefusesClientsWithoutKeysOrWithTheWrongServerKey) {
  TestNode to{with_keys()};
  // The ZeroMQ client closes this connection itself, so no counter shows when.
  TestNode plain;
  plain.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                        numbered_frame(66));
  TestNode from{with_keys()};
  from.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                       numbered_frame(67));
  EXPECT_TRUE(wait_until([&] { return from.transport->counts().dropped == 1; }));
  from.transport->send({to.transport->address(), make_key_pair().public_key}, TrafficClass::control,
                       numbered_frame(68));
  ASSERT_TRUE(refuses_more(to, 0));

  // This client continues without security, although the server's greeting demands it.
  const Frame frame = numbered_frame(69);
  std::string bytes = greeting("NULL") + ready + '\0' + static_cast<char>(frame.head.size());
  for (const std::byte byte : frame.head) bytes += static_cast<char>(byte);
  TestNode open;
  RawConnection to_open{open.transport->address()};
  ASSERT_EQ(to_open.send(bytes), bytes.size());
  ASSERT_TRUE(open.wait_for(1));
  RawConnection to_keyed{to.transport->address()};
  ASSERT_EQ(to_keyed.send(bytes), bytes.size());
  ASSERT_TRUE(to_keyed.closes_within(wait_max));

  TestNode other{with_keys()};
  other.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// Connects to the node over TCP and sends `bytes`. Returns the socket.
int connect_and_send(const TestNode& node, std::string_view bytes) {
  const std::string& address = node.transport->address();
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  if (!bytes.empty()) {
    EXPECT_GT(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  return descriptor;
}

TEST(Transport, SurvivesGarbageAndHalfOpenConnections) {
  TestNode to{with_keys()};
  std::vector<int> sockets;
  for (int i = 0; i < 200; ++i) {
    sockets.push_back(connect_and_send(to, ""));
    sockets.push_back(connect_and_send(to, "GET / HTTP/1.1\r\n\r\n"));
    std::string zeros(64, '\0');
    zeros[0] = '\xff';
    zeros[9] = '\x7f';
    sockets.push_back(connect_and_send(to, zeros));
  }
  TestNode from{with_keys()};
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  EXPECT_TRUE(to.wait_for(1));
  for (const int socket : sockets) ::close(socket);
}

TEST(Transport, RefusesFramesBeyondPartBytesMax) {
  TransportOptions options;
  options.part_bytes_max = 100'000;
  TestNode to{options};
  TestNode from;
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(66, 65536));
  ASSERT_TRUE(refuses_more(to, 0));
  TestNode other;
  other.transport->send(to.peer(), TrafficClass::data, numbered_frame(1, 20000));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// A client sends message parts without ever sending a last one, which no ZeroMQ client does.
TEST(Transport, ClosesAConnectionWhoseMessageNeverEnds) {
  using namespace std::string_literals;
  TestNode to;
  const int endless_message = connect_and_send(to, greeting("NULL") + ready);
  const std::string part = "\1\1x"s;
  for (int i = 0; i < 11; ++i)
    (void)::send(endless_message, part.data(), part.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(refuses_more(to, 0));
  ::close(endless_message);
  EXPECT_EQ(to.transport->counts().refused, 1U);
  TestNode from;
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  EXPECT_TRUE(to.wait_for(1));
}

/// A ROUTER of libzmq 4.3.4 with heartbeats would end the process in this case: it has stopped
/// reading a connection, learns that the connection was reset, and then sends a heartbeat on it.
TEST(Transport, KeepsReceivingAfterAnUnreadConnectionIsReset) {
  const Frame frame = numbered_frame(1);
  std::string message = '\0' + std::string(1, static_cast<char>(frame.head.size()));
  for (const std::byte byte : frame.head) message += static_cast<char>(byte);
  std::string flood = greeting("NULL") + ready;
  while (flood.size() < 32U << 20U) flood += message;
  for (int round = 0; round < 10; ++round) {
    TestNode to;
    TestNode from;
    {
      const std::lock_guard receiving_lock{to.receiving};
      RawConnection client{to.transport->address()};
      ASSERT_LT(client.send(flood, std::chrono::milliseconds{100}), flood.size());
      client.reset();
      from.transport->send(to.peer(), TrafficClass::control, numbered_frame(2));
    }
    ASSERT_TRUE(to.wait_for_packet(2)) << "round " << round;
  }
}

/// A client that sends a broken pack loses only the frames of that message from the broken one on.
TEST(Transport, DropsBrokenPacks) {
  const auto packed = [](const std::vector<Frame>& frames, BodyPart body_part) {
    Bytes pack(pack_bytes_max);
    std::byte* at = write_pack_prefix(pack.data());
    for (const Frame& frame : frames) at = write_packed(frame, body_part, at);
    pack.resize(static_cast<std::size_t>(at - pack.data()));
    return pack;
  };
  const auto body_of = [](const Frame& frame) {
    Bytes body;
    for (const Attachment& part : frame.body)
      body.insert(body.end(), part.bytes.begin(), part.bytes.end());
    return body;
  };
  const Frame small = numbered_frame(1);
  const Frame large = numbered_frame(2, 5000);
  const Bytes body = body_of(large);
  Bytes truncated = packed({small, numbered_frame(66)}, BodyPart::first);
  truncated.resize(truncated.size() - 1);
  Bytes endless_message = packed({small}, BodyPart::first);
  std::fill_n(endless_message.begin() + pack_prefix_size, 8, std::byte{0xff});
  const Bytes heads = packed({large, numbered_frame(67, 5000)}, BodyPart::second);
  const std::vector<std::vector<Bytes>> messages{
      {packed({}, BodyPart::first)},
      {endless_message},
      {truncated},    // the first frame is complete
      {heads, body},  // the first frame is complete
      {heads, body, body},
      {heads},
      {Bytes{}},
      {Bytes{}, body},
      {packed({numbered_frame(3)}, BodyPart::first)},
  };

  TestNode to;
  zmq::context_t context;
  zmq::socket_t client{context, zmq::socket_type::dealer};
  client.set(zmq::sockopt::linger, 0);
  client.connect(to.transport->address());
  for (const auto& message : messages)
    for (std::size_t i = 0; i < message.size(); ++i)
      client.send(zmq::buffer(message[i]),
                  i + 1 < message.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  ASSERT_TRUE(to.wait_for(3));
  EXPECT_EQ(to.packets, (std::vector<std::uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace starling::wire
