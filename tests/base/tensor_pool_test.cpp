#include "starling/base/tensor_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "starling/base/memory.hpp"
#include "starling/base/random.hpp"

namespace starling::tensor_pool {
namespace {

#ifndef __SANITIZE_ADDRESS__
constexpr bool is_pooled = true;
#else
constexpr bool is_pooled = false;  // all blocks come from malloc
#endif

TEST(Blocks, AreAlignedTo64BytesAndWritableToTheirEnd) {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65'535U, 65'536U, 65'537U, 5'000'000U}) {
    void* block = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
    std::memset(block, 1, bytes);
    release(block, bytes);
  }
}

TEST(Blocks, AreReusedForTensorsOfSimilarSize) {
  if (!is_pooled) GTEST_SKIP();
  void* const first = allocate(1'000'000);
  release(first, 1'000'000);
  void* const second = allocate(999'000);
  EXPECT_EQ(second, first);
  release(second, 999'000);
}

TEST(Blocks, AreAdjacentIfTheyAreNew) {
  if (!is_pooled) GTEST_SKIP();
  // Nothing else asks for blocks of this size, so all of these are new.
  constexpr std::size_t bytes = std::size_t{5} << 19U;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(static_cast<std::byte*>(allocate(bytes)));
  for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_EQ(blocks[i], blocks[i - 1] + bytes);
  for (std::byte* block : blocks) release(block, bytes);
}

TEST(Blocks, AreCountedAndKeptUpToTheMaximum) {
  if (!is_pooled) GTEST_SKIP();
  const Counts before = counts();
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t i = 0; i < 200; ++i) blocks.emplace_back(allocate(i * 10'000), i * 10'000);
  EXPECT_GE(counts().used_bytes, before.used_bytes + 190 * std::size_t{1'000'000});
  for (const auto& [block, bytes] : blocks) release(block, bytes);
  EXPECT_EQ(counts().used_bytes, before.used_bytes);
  EXPECT_LE(counts().idle_bytes, idle_bytes_max);
  EXPECT_GT(counts().idle_bytes, idle_bytes_max / 2);
}

TEST(Blocks, LargerThanTheMaximumAreReleasedAtOnce) {
  if (!is_pooled) GTEST_SKIP();
  const Counts before = counts();
  const std::size_t resident = resident_bytes();
  void* const block = allocate(2 * idle_bytes_max);
  std::memset(block, 1, 2 * idle_bytes_max);
  release(block, 2 * idle_bytes_max);
  EXPECT_LT(resident_bytes(), resident + idle_bytes_max);
  EXPECT_EQ(counts().idle_bytes, before.idle_bytes);
  EXPECT_EQ(counts().used_bytes, before.used_bytes);
}

/// Blocks that overlap, or that the pool gives out twice, change what others contain.
TEST(Blocks, KeepWhatIsWrittenUntilTheyAreReleased) {
  struct Block {
    unsigned char* data;
    std::size_t bytes;
    unsigned char content;
  };
  Random random{1};
  std::vector<Block> blocks;
  const auto release_one = [&](std::size_t i) {
    const Block block = blocks[i];
    blocks[i] = blocks.back();
    blocks.pop_back();
    for (std::size_t at = 0; at < block.bytes; at += 1024)
      ASSERT_EQ(block.data[at], block.content) << block.bytes;
    ASSERT_EQ(block.data[block.bytes - 1], block.content) << block.bytes;
    release(block.data, block.bytes);
  };
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) {
      const std::size_t bytes = (1 + random.below(31)) * block_bytes_min + 1;
      blocks.push_back({static_cast<unsigned char*>(allocate(bytes)), bytes,
                        static_cast<unsigned char>(random.below(256))});
      std::memset(blocks.back().data, blocks.back().content, bytes);
      if (i % 2 == 1) release_one(random.below(blocks.size()));
    }
    // More than the pool keeps, so it gives pages back to the system.
    while (blocks.size() > 10) release_one(random.below(blocks.size()));
  }
  while (!blocks.empty()) release_one(0);
}

}  // namespace
}  // namespace starling::tensor_pool
