#include "starling/base/check.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace starling {
namespace {

[[noreturn]] void throw_condition(const char* condition, const char*, int) {
  throw std::runtime_error{condition};
}
[[noreturn]] void throw_inner(const char*, const char*, int) { throw std::runtime_error{"inner"}; }

/// Returns the message of the exception that the handler of a failed check throws.
std::string fail_check() {
  try {
    STARLING_CHECK(1 + 1 == 3);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(CheckDeathTest, FailedCheckEndsTheProgramAndNamesFileAndLine) {
  EXPECT_DEATH(STARLING_CHECK(1 + 1 == 3), "check_test.cpp:[0-9]+: broken invariant: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, IgnoresHandlersOfOtherThreads) {
  const CheckScope scope{throw_condition};
  EXPECT_DEATH(std::thread{[] { STARLING_CHECK(false); }}.join(), "broken invariant");
}

TEST(Check, HandlerMayThrow) {
  const CheckScope scope{throw_condition};
  EXPECT_EQ(fail_check(), "1 + 1 == 3");
}

TEST(Check, HandlersNest) {
  const CheckScope outer{throw_condition};
  {
    const CheckScope inner{throw_inner};
    EXPECT_EQ(fail_check(), "inner");
  }
  EXPECT_EQ(fail_check(), "1 + 1 == 3");
}

}  // namespace
}  // namespace starling
