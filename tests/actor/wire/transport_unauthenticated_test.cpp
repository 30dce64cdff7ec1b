/// Transports among senders that are not admitted, speak another protocol, or send what is broken:
/// real sockets on the loopback interface.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "tests/actor/wire/end.hpp"
#include "tests/actor/wire/line.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

/// Whether it comes to have turned more away than `before`.
[[nodiscard]] bool refuses_more(const End& end, std::uint64_t before) {
  return wait_until([&] { return end.transport->counts().refused > before; });
}

TEST(Transport, TurnsAwayKeysThatAreNotAdmitted) {
  const auto friendly = with_keys();
  End to{with_keys([&](const Key& key) { return key == friendly.keys->public_key; })};
  End stranger{with_keys()};
  stranger.transport->send(to.peer(), TrafficClass::control, numbered_frame(66));
  ASSERT_TRUE(refuses_more(to, 0));
  End from{friendly};
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

TEST(Transport, IsNotHeardUnderTheWrongServerKeyNorWithoutKeys) {
  End to{with_keys()};
  // ZeroMQ ends this connection itself, and no count of ours tells when.
  End plain;
  plain.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                        numbered_frame(66));
  End from{with_keys()};
  from.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                       numbered_frame(67));
  EXPECT_TRUE(wait_until([&] { return from.transport->counts().dropped == 1; }));
  from.transport->send({to.transport->address(), make_keys().public_key}, TrafficClass::control,
                       numbered_frame(68));
  ASSERT_TRUE(refuses_more(to, 0));

  // A client that goes on without security, whatever the server's greeting says.
  const Frame frame = numbered_frame(69);
  std::string bytes = greeting("NULL") + ready + '\0' + static_cast<char>(frame.head.size());
  for (const std::byte byte : frame.head) bytes += static_cast<char>(byte);
  End open;
  Line heard{open.transport->address()};
  ASSERT_EQ(heard.send(bytes), bytes.size());
  ASSERT_TRUE(open.wait_for(1));
  Line unheard{to.transport->address()};
  ASSERT_EQ(unheard.send(bytes), bytes.size());
  ASSERT_TRUE(unheard.ends_within(wait_max));

  End other{with_keys()};
  other.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// Sends `bytes` over TCP to where `end` listens; returns the socket.
int stranger_at(const End& end, std::string_view bytes) {
  const std::string& address = end.transport->address();
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

TEST(Transport, OutlivesGarbageAndHalfOpenConnections) {
  End to{with_keys()};
  std::vector<int> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(stranger_at(to, ""));
    strangers.push_back(stranger_at(to, "GET / HTTP/1.1\r\n\r\n"));
    std::string zeros(64, '\0');
    zeros[0] = '\xff';
    zeros[9] = '\x7f';
    strangers.push_back(stranger_at(to, zeros));
  }
  End from{with_keys()};
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  EXPECT_TRUE(to.wait_for(1));
  for (const int stranger : strangers) ::close(stranger);
}

TEST(Transport, DoesNotTakeFramesBeyondItsBound) {
  TransportOptions options;
  options.part_bytes_max = 100'000;
  End to{options};
  End from;
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(66, 65536));
  ASSERT_TRUE(refuses_more(to, 0));
  End other;
  other.transport->send(to.peer(), TrafficClass::data, numbered_frame(1, 20000));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// It sends part after part and never the last, as ZeroMQ itself would not.
TEST(Transport, BreaksWithWhoNeverEnds) {
  using namespace std::string_literals;
  End to;
  const int endless = stranger_at(to, greeting("NULL") + ready);
  const std::string part = "\1\1x"s;
  for (int i = 0; i < 11; ++i) (void)::send(endless, part.data(), part.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(refuses_more(to, 0));
  ::close(endless);
  EXPECT_EQ(to.transport->counts().refused, 1U);
  End from;
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(1));
  EXPECT_TRUE(to.wait_for(1));
}

/// A sender of a message that is no pack, or half of one, loses only that message.
TEST(Transport, PassesOverBrokenPacks) {
  const auto packed = [](const std::vector<Frame>& frames, BodyPlace body_place) {
    Bytes pack(pack_max);
    std::byte* at = begin_pack(pack.data());
    for (const Frame& frame : frames) at = put_packed(frame, body_place, at);
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
  Bytes cut = packed({small, numbered_frame(66)}, BodyPlace::in_pack);
  cut.resize(cut.size() - 1);
  Bytes endless = packed({small}, BodyPlace::in_pack);
  std::fill_n(endless.begin() + pack_prefix, 8, std::byte{0xff});
  const Bytes heads = packed({large, numbered_frame(67, 5000)}, BodyPlace::second_part);
  const std::vector<std::vector<Bytes>> messages{
      {packed({}, BodyPlace::in_pack)},
      {endless},
      {cut},          // its first frame is whole
      {heads, body},  // and so is this one's
      {heads, body, body},
      {heads},
      {Bytes{}},
      {Bytes{}, body},
      {packed({numbered_frame(3)}, BodyPlace::in_pack)},
  };

  End to;
  zmq::context_t context;
  zmq::socket_t stranger{context, zmq::socket_type::dealer};
  stranger.set(zmq::sockopt::linger, 0);
  stranger.connect(to.transport->address());
  for (const auto& message : messages)
    for (std::size_t i = 0; i < message.size(); ++i)
      stranger.send(zmq::buffer(message[i]),
                    i + 1 < message.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  ASSERT_TRUE(to.wait_for(3));
  EXPECT_EQ(to.packets, (std::vector<std::uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace starling::wire
