/// Tests the parts of shuffles that need no engine: sorted runs, and the buffer that combines.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/shuffle/combining_buffer.hpp"
#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

template <class K>
void expect_sorted_like_a_stable_sort(const std::vector<K>& keys) {
  std::vector<WithSortKey<K, std::size_t>> records;
  for (const K& key : keys) records.push_back({key, records.size()});
  auto expected = records;
  std::ranges::stable_sort(expected, {}, &WithSortKey<K, std::size_t>::key);
  sort_records<KeyOrder>(records);
  for (std::size_t i = 0; i < records.size(); ++i)
    ASSERT_EQ(records[i].value, expected[i].value) << "at " << i << " of " << records.size();
}

/// Keys of which `different` differ, made of random numbers by `key_of`.
template <class F>
auto random_keys(std::size_t count, std::uint64_t different, const F& key_of) {
  std::vector<decltype(key_of(std::uint64_t{}))> keys;
  Random random{count + different};
  for (std::size_t i = 0; i < count; ++i) keys.push_back(key_of(mix(random.below(different))));
  return keys;
}

TEST(SortRecords, IsAStableSortOfAnyKeys) {
  for (const std::size_t count : {0U, 1U, 2U, 100U, 5000U})
    for (const std::uint64_t different : {1U, 10U, 1'000'000U}) {
      const auto check = [&](const auto& key_of) {
        expect_sorted_like_a_stable_sort(random_keys(count, different, key_of));
      };
      check([](std::uint64_t x) { return x; });
      check([](std::uint64_t x) { return static_cast<std::int64_t>(x); });
      check([](std::uint64_t x) { return static_cast<std::int8_t>(x); });
      check([](std::uint64_t x) { return static_cast<double>(x) - 1e19; });
      // Texts with bytes of either sign, that differ in their first bytes, or behind these.
      check([](std::uint64_t x) { return std::string(x % 11, static_cast<char>(x >> 8U)); });
      check([](std::uint64_t x) { return "the same " + std::to_string(x); });
      check([](std::uint64_t x) { return std::pair{x % 3, std::to_string(x)}; });
      check([](std::uint64_t x) { return std::optional{x}; });
    }
}

TEST(FirstBytes, AreThoseInMemory) {
  const std::string bytes = "\xff\x02\x80\x04\x05\x86\x07\x08\x09";
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(size, 8); ++i)
      expected |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    EXPECT_EQ(first_bytes(std::string_view{bytes}.substr(0, size)), expected) << size;
  }
}

using Buffer = CombiningBuffer<std::string, std::string, std::plus<>>;

TEST(CombiningBuffer, GrowsAlikeWhetherPromptOrNot) {
  const std::plus<> combine;
  Buffer waiting{combine, false};
  Buffer prompt{combine, true};
  const auto keys =
      random_keys(10'000, 500, [](std::uint64_t x) { return "a long text " + std::to_string(x); });
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string value = std::to_string(i) + ' ';
      const std::uint64_t hash = hash_of(keys[i]);
      ASSERT_EQ(waiting.add(hash, keys[i], value), prompt.add(hash, keys[i], value)) << i;
    }
    EXPECT_EQ(waiting.finish(), prompt.finish());
    const auto records = waiting.take();
    const auto same = prompt.take();
    ASSERT_EQ(records.size(), same.size());
    EXPECT_GT(records.size(), 400U);
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].key, same[i].key);
      EXPECT_EQ(records[i].value, same[i].value);
    }
  }
}

TEST(CombiningBuffer, CombinesAtOnceIfPrompt) {
  const auto fail = [](int, int) -> int { throw std::runtime_error{"no sum"}; };
  const std::function<int(int, int)> combine = fail;
  CombiningBuffer<int, int, std::function<int(int, int)>> prompt{combine, true};
  (void)prompt.add(1, 7, 1);
  EXPECT_THROW((void)prompt.add(1, 7, 2), std::runtime_error);
}

}  // namespace
}  // namespace starling::flow
