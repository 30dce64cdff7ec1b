#include "starling/actor/wire/peer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace starling::wire {
namespace {

TEST(Peer, ParsesPrintedPeers) {
  for (const char* text : {"tcp://10.0.0.2:7400", "tcp://[2001:db8::1]:7400", "tcp://[::1]:1"}) {
    const auto peer = parse_peer(text);
    ASSERT_TRUE(peer) << text;
    EXPECT_EQ(print(*peer), text);
  }
}

const std::string hex = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";

TEST(Peer, KeepsItsKey) {
  const std::string text = "tcp://10.0.0.2:7400?key=" + hex;
  const auto peer = parse_peer(text);
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->address, "tcp://10.0.0.2:7400");
  ASSERT_TRUE(peer->key);
  EXPECT_EQ((*peer->key)[1], 0x11);
  EXPECT_EQ((*peer->key)[16], 0x01);
  EXPECT_EQ((*peer->key)[31], 0xef);
  EXPECT_EQ(print(*peer), text);
  EXPECT_EQ(without_key(text), peer->address);
}

/// Without its key, a peer would be one to which nothing is encrypted.
TEST(Peer, IsRefusedWithABadKey) {
  for (const std::string& key : {std::string{}, hex.substr(1), hex + "0", hex.substr(1) + "A",
                                 hex.substr(1) + "g", hex.substr(1) + " "}) {
    const auto peer = parse_peer("tcp://10.0.0.2:7400?key=" + key);
    ASSERT_FALSE(peer) << key;
    EXPECT_NE(peer.error().message.find("has no key after ?key="), std::string::npos);
  }
}

TEST(Peer, HasANumericAddressAndAPort) {
  EXPECT_TRUE(parse_peer("tcp://10.0.0.2:65535"));
  for (const char* text :
       {"", "tcp://", "10.0.0.2:7400", "ipc://10.0.0.2:7400", "tcp://localhost:7400",
        "tcp://10.0.0.2", "tcp://10.0.0.2:", "tcp://10.0.0.2:0", "tcp://10.0.0.2:65536",
        "tcp://10.0.0.2:-1", "tcp://10.0.0.2:7400 ", "tcp://10.0.0:7400", "tcp://:7400"})
    EXPECT_FALSE(parse_peer(text)) << text;
}

TEST(Peer, HasOneSpellingForEachAddress) {
  // The text is compared with the address of a connected peer, as the system prints it.
  for (const char* text : {"tcp://10.0.0.2:07400", "tcp://[2001:DB8::1]:7400",
                           "tcp://[0:0:0:0:0:0:0:1]:7400", "tcp://[::ffff:10.0.0.2]:7400",
                           "tcp://0.0.0.0:7400", "tcp://[::]:7400", "tcp://010.0.0.2:7400"}) {
    const auto peer = parse_peer(text);
    ASSERT_FALSE(peer) << text;
    EXPECT_NE(peer.error().message.find("' is not an address; valid: tcp://IP:PORT"),
              std::string::npos)
        << peer.error().message;
  }
}

}  // namespace
}  // namespace starling::wire
