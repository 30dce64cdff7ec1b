#include "starling/actor/compute/task.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace starling::actor {
namespace {

TEST(RunCatching, LimitsTheTextOfAnException) {
  const auto why =
      run_catching([] { throw std::runtime_error{std::string(std::size_t{9} << 20U, 'x')}; });
  ASSERT_TRUE(why);
  EXPECT_EQ(why->size(), exception_text_max);
}

TEST(RunCatching, ReturnsNothingIfNothingIsThrown) {
  EXPECT_EQ(run_catching([] {}), std::nullopt);
}

}  // namespace
}  // namespace starling::actor
