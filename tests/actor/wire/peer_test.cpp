#include "starling/actor/wire/peer.hpp"

#include <gtest/gtest.h>

namespace starling::wire {
namespace {

TEST(Peer, ParsesPrintedPeers) {
  for (const char* text : {"tcp://10.0.0.2:7400", "tcp://[2001:db8::1]:7400", "tcp://[::1]:1"}) {
    const auto peer = parse_peer(text);
    ASSERT_TRUE(peer) << text;
    EXPECT_EQ(print(*peer), text);
  }
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
