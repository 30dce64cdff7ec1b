/// Tests the parts of shuffles that need no engine: sorted runs, and the buffer that combines.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/shuffle/combining_buffer.hpp"
#include "starling/engine/flow/shuffle/order.hpp"
#include "starling/engine/flow/values/box.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

/// Returns the records that a buffer has collected.
template <class R>
std::vector<R> records_of(const BufferedBlocks& buffered) {
  std::vector<R> records;
  for (const Bytes& block : buffered.blocks.in_memory)
    for (std::span<const std::byte> rest = block; !rest.empty();)
      get_record(rest, records.emplace_back());
  EXPECT_EQ(records.size(), buffered.records);
  return records;
}

template <class K>
void expect_sorted_like_a_stable_sort(const std::vector<K>& keys) {
  using R = WithSortKey<K, std::uint64_t>;
  std::vector<R> expected;
  SortingBuffer<R, KeyOrder> buffer;
  for (const K& key : keys) {
    EXPECT_GT(buffer.add(key, std::uint64_t{expected.size()}), 0U);
    expected.push_back({key, expected.size()});
  }
  std::ranges::stable_sort(expected, {}, &R::key);
  const auto records = records_of<R>(buffer.take());
  ASSERT_EQ(records.size(), keys.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].value, expected[i].value) << "at " << i << " of " << records.size();
    ASSERT_EQ(records[i].key, expected[i].key);
  }
  EXPECT_EQ(buffer.take().records, 0U);
}

/// Keys of which `different` differ, made of random numbers by `key_of`.
template <class F>
auto random_keys(std::size_t count, std::uint64_t different, const F& key_of) {
  std::vector<decltype(key_of(std::uint64_t{}))> keys;
  Random random{count + different};
  for (std::size_t i = 0; i < count; ++i) keys.push_back(key_of(mix(random.below(different))));
  return keys;
}

TEST(SortingBuffer, SortsAnyKeysStably) {
  for (const std::size_t count : {0U, 1U, 2U, 100U, 5000U})
    for (const std::uint64_t different : {1U, 10U, 1'000'000U}) {
      const auto check = [&](const auto& key_of) {
        expect_sorted_like_a_stable_sort(random_keys(count, different, key_of));
      };
      check([](std::uint64_t x) { return x; });
      check([](std::uint64_t x) { return static_cast<std::int64_t>(x); });
      check([](std::uint64_t x) { return static_cast<std::int8_t>(x); });
      check([](std::uint64_t x) { return static_cast<double>(x) - 1e19; });
      check([](std::uint64_t x) { return x % 3 == 0 ? -0.0F : x % 3 == 1 ? 0.0F : -1e-30F; });
      check([](std::uint64_t x) { return std::tuple{1.5, std::string(x % 5, 'x'), x % 7}; });
      // Texts with bytes of either sign, that differ in their first bytes, or behind these.
      check([](std::uint64_t x) { return std::string(x % 11, static_cast<char>(x >> 8U)); });
      check([](std::uint64_t x) { return "the same " + std::to_string(x); });
      check([](std::uint64_t x) { return std::pair{x % 3, std::to_string(x)}; });
      check([](std::uint64_t x) { return std::optional{x}; });
    }
}

TEST(SortPlaces, SortsAnyRanks) {
  constexpr std::uint64_t most = UINT64_MAX;
  using Draw = std::function<std::uint64_t(Random&)>;
  const std::vector<Draw> draws{
      [](Random& random) { return random(); },
      [](Random&) { return most; },
      [](Random& random) { return random.below(2) * most; },
      [](Random& random) { return most - random.below(100); },
      [](Random& random) { return (std::uint64_t{1} << 40U) + random.below(1 << 13U); },
      [](Random& random) { return std::uint64_t{1} << random.below(64); },
  };
  Random random{7};
  for (std::size_t i = 0; i < draws.size(); ++i)
    for (const std::size_t size : {0, 1, 7, 8, 15, 16, 17, 1000, 40'000}) {
      std::vector<RankedPosition> positions;
      while (positions.size() < size)
        positions.emplace_back(draws[i](random), static_cast<std::uint32_t>(positions.size()));
      auto expected = positions;
      std::ranges::sort(expected);
      sort_positions(positions, std::less<>{});
      EXPECT_EQ(positions, expected) << "ranks " << i << ", size " << size;
    }
}

TEST(ArrivalBuffer, KeepsTheOrderAndRecordsWithoutBytes) {
  ArrivalBuffer<Box<std::tuple<>>> empty;
  for (int i = 0; i < 3; ++i) empty.add(std::tuple<>{});
  EXPECT_EQ(records_of<Box<std::tuple<>>>(empty.take()).size(), 3U);
  ArrivalBuffer<Box<std::string>> buffer;
  // More than one block, one of which is a long record.
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 3000; ++i) texts.emplace_back(i == 1000 ? 200'000 : i % 90, 'x');
  for (const std::string& text : texts) buffer.add(text);
  const auto buffered = buffer.take();
  EXPECT_EQ(buffered.blocks.in_memory.size(), 3U);
  const auto records = records_of<Box<std::string>>(buffered);
  ASSERT_EQ(records.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(records[i].value, texts[i]) << i;
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
    const auto records = records_of<Buffer::Record>(waiting.take());
    const auto same = records_of<Buffer::Record>(prompt.take());
    ASSERT_EQ(records.size(), same.size());
    EXPECT_GT(records.size(), 400U);
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].key, same[i].key);
      EXPECT_EQ(records[i].value, same[i].value);
    }
  }
}

TEST(CombiningBuffer, CountsLargeRecordsAtOnce) {
  const std::plus<> combine;
  for (const bool is_prompt : {false, true}) {
    Buffer buffer{combine, is_prompt};
    std::size_t grown = 0;
    std::size_t least = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      const std::string key = "key " + std::to_string(i % 5);
      const std::string value(i % 3 == 0 ? 100'000 : 10, 'x');
      grown += buffer.add(hash_of(key), key, value);
      least += i % 3 == 0 ? value.size() : 0;
      EXPECT_GE(grown, least) << i;
    }
    std::size_t size = 0;
    for (const auto& record : records_of<Buffer::Record>(buffer.take()))
      size += record.value.size();
    EXPECT_EQ(size, 14U * 100'000 + 26 * 10);
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
