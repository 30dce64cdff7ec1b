#include "starling/base/check.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace starling {
namespace {

[[noreturn]] void refuse(const char* condition, const char*, int) {
  throw std::runtime_error{condition};
}
[[noreturn]] void refuse_otherwise(const char*, const char*, int) {
  throw std::runtime_error{"otherwise"};
}

std::string broken() {
  try {
    STARLING_CHECK(1 + 1 == 3);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "passed";
}

TEST(CheckDeathTest, BrokenConditionEndsTheProgramAndSaysWhere) {
  EXPECT_DEATH(STARLING_CHECK(1 + 1 == 3), "check_test.cpp:[0-9]+: broken invariant: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, HandlersOfOtherThreadsDoNotCount) {
  const CheckScope scope{refuse};
  EXPECT_DEATH(std::thread{[] { STARLING_CHECK(false); }}.join(), "broken invariant");
}

TEST(Check, HandlerMayThrow) {
  const CheckScope scope{refuse};
  EXPECT_EQ(broken(), "1 + 1 == 3");
}

TEST(Check, HandlersNest) {
  const CheckScope outer{refuse};
  {
    const CheckScope inner{refuse_otherwise};
    EXPECT_EQ(broken(), "otherwise");
  }
  EXPECT_EQ(broken(), "1 + 1 == 3");
}

}  // namespace
}  // namespace starling
