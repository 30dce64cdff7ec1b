#include "starling/tools/cluster/keys/address.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

TEST(Address, ParsesHostAndPort) {
  EXPECT_EQ(parse_address("10.0.0.1:7400", false).value(), "tcp://10.0.0.1:7400");
  EXPECT_EQ(parse_address("tcp://host.example:1", false).value(), "tcp://host.example:1");
  EXPECT_EQ(parse_address("[::1]:65535", false).value(), "tcp://[::1]:65535");
  EXPECT_EQ(parse_address("*:7400", true).value(), "tcp://*:7400");
  EXPECT_EQ(parse_address("127.0.0.1:*", true).value(), "tcp://127.0.0.1:*");
}

TEST(Address, RefusesInvalidAddresses) {
  for (const char* text : {"", ":", "host", "host:", ":7400", "host:0", "host:65536", "host:x",
                           "::1:7400", "a b:1", "*:7400", "host:*", "udp://host:1", "host:-1",
                           "a/b:1", "10.0.0.9:1;10.0.0.1:1", "host;x:1"}) {
    const auto address = parse_address(text, false);
    ASSERT_FALSE(address) << text;
    EXPECT_NE(address.error().message.find("valid: HOST:PORT"), std::string::npos);
  }
}

TEST(Address, KnowsWhichAddressesOnlyThisMachineReaches) {
  for (const char* text : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(is_loopback(parse_address(text, true).value())) << text;
  for (const char* text :
       {"10.0.0.1:1", "*:1", "0.0.0.0:1", "[::]:1", "host:1", "127.example.com:1",
        "127.0.0.1.example.com:1", "localhost.example.com:1", "128.0.0.1:1"})
    EXPECT_FALSE(is_loopback(parse_address(text, true).value())) << text;
}

}  // namespace
}  // namespace starling::program
