#include "starling/base/tensor_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace starling::blocks {
namespace {

#ifndef __SANITIZE_ADDRESS__  // which keeps nothing
constexpr bool are_kept = true;
#else
constexpr bool are_kept = false;
#endif

TEST(Blocks, LieAtMultiplesOf64AndCanBeWrittenToTheirEnd) {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65'535U, 65'536U, 65'537U, 5'000'000U}) {
    void* block = take(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
    std::memset(block, 1, bytes);
    give(block, bytes);
  }
}

TEST(Blocks, GivenBackAreUsedAgainForTensorsOfAboutTheirSize) {
  if (!are_kept) GTEST_SKIP();
  void* const first = take(1'000'000);
  give(first, 1'000'000);
  void* const second = take(999'000);
  EXPECT_EQ(second, first);
  give(second, 999'000);
}

TEST(Blocks, LieOneBehindTheOtherWhereTheyAreNew) {
  if (!are_kept) GTEST_SKIP();
  // Nothing else asks for blocks of this size, so all of these are new.
  constexpr std::size_t bytes = std::size_t{7} << 17U;
  std::vector<std::byte*> all;
  for (int i = 0; i < 10; ++i) all.push_back(static_cast<std::byte*>(take(bytes)));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i], all[i - 1] + bytes);
  for (std::byte* block : all) give(block, bytes);
}

TEST(Blocks, AreCountedAndNoMoreThanSoManyAreKept) {
  if (!are_kept) GTEST_SKIP();
  const Counts before = counts();
  std::vector<std::pair<void*, std::size_t>> all;
  for (std::size_t i = 0; i < 200; ++i) all.emplace_back(take(i * 10'000), i * 10'000);
  EXPECT_GE(counts().used_bytes, before.used_bytes + 190 * std::size_t{1'000'000});
  for (const auto& [block, bytes] : all) give(block, bytes);
  EXPECT_EQ(counts().used_bytes, before.used_bytes);
  EXPECT_LE(counts().idle_bytes, idle_bytes_max);
  EXPECT_GT(counts().idle_bytes, idle_bytes_max / 2);
}

TEST(Blocks, OfMoreThanIsKeptGoBackAtOnce) {
  if (!are_kept) GTEST_SKIP();
  const Counts before = counts();
  give(take(2 * idle_bytes_max), 2 * idle_bytes_max);
  EXPECT_EQ(counts().idle_bytes, before.idle_bytes);
  EXPECT_EQ(counts().used_bytes, before.used_bytes);
}

}  // namespace
}  // namespace starling::blocks
