#include "starling/base/result.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace starling {
namespace {

Result<std::vector<std::string>> names() { return std::vector<std::string>{"a", "b"}; }

TEST(Result, GivesTheValueOfATemporaryAway) {
  static_assert(!std::is_reference_v<decltype(names().value())>);
  static_assert(!std::is_reference_v<decltype(*names())>);
  std::string all;
  for (const std::string& name : names().value()) all += name;
  EXPECT_EQ(all, "ab");
}

TEST(ResultDeathTest, NamesTheErrorThatIsUsedAsAValue) {
  const Result<int> failed = Error{"no such file"};
  EXPECT_FALSE(failed);
  EXPECT_DEATH((void)failed.value(), "no such file");
}

}  // namespace
}  // namespace starling
