#include "starling/models/device.hpp"

#include <gtest/gtest.h>

namespace starling::models {
namespace {

TEST(Device, IsReadAndPrinted) {
  for (const std::string text : {"cpu", "auto", "cuda:0", "cuda:7"}) {
    const auto device = parse_device(text);
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_EQ(print(*device), text);
  }
  EXPECT_EQ(parse_device("cuda").value(), parse_device("cuda:0").value());
  EXPECT_EQ(parse_device("cuda:7").value().index, 7U);
}

TEST(Device, RefusesAnInvalidNameAndListsValidOnes) {
  for (const std::string text : {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", "cuda:1024"}) {
    const auto device = parse_device(text);
    ASSERT_FALSE(device) << text;
    EXPECT_EQ(device.error().message,
              "'" + text + "' is not a device; valid: cpu, auto, cuda:0, cuda:1 and so on");
  }
}

}  // namespace
}  // namespace starling::models
