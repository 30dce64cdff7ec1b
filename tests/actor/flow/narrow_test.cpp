/// The narrow operations and the actions, compared with loops over a vector.
#include <map>
#include <numeric>
#include <ranges>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

TEST(Narrow, OperationsEqualALoop) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto) {
    std::vector<int> data(random.below(size_max + 1));
    std::iota(data.begin(), data.end(), -20);
    const auto repeat = [](int x) { return std::vector(static_cast<std::size_t>(x & 3), x); };
    const Set<int> set = engine.collection(data);  // crosses the interface in batches
    const auto result = set.map([](int x) { return 3 * x; })
                            .filter([](int x) { return x % 2 == 0; })
                            .flat_map(repeat)
                            .union_with(set)
                            .zip_with_index();
    std::vector<std::pair<int, std::uint64_t>> expected;
    const auto add = [&](int x) { expected.emplace_back(x, expected.size()); };
    for (const int x : data)
      if ((3 * x) % 2 == 0)
        for (const int y : repeat(3 * x)) add(y);
    for (const int x : data) add(x);
    EXPECT_EQ(result.collect().value(), expected);
    EXPECT_EQ(result.count().value(), expected.size());
    const std::uint64_t limit = random.below(data.size() + 5);
    auto first = data;
    first.resize(std::min<std::size_t>(limit, data.size()));
    EXPECT_EQ(set.take(limit).value(), first);
  });
}

TEST(Narrow, ReduceAndFoldKeepTheOrder) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    const Pairs data = random_pairs(random, size_max, keys);
    std::string all;
    for (const auto& [key, value] : data) all += key;
    const auto words = engine.collection(data).map([](const auto& pair) { return pair.first; });
    const auto reduced = words.reduce(std::plus<>{}).value();
    EXPECT_EQ(reduced, data.empty() ? std::nullopt : std::optional{all});
    const auto bytes = words.fold(
        std::size_t{0}, [](std::size_t sum, const std::string& w) { return sum + w.size(); },
        std::plus<>{});
    EXPECT_EQ(bytes.value(), all.size());
  });
}

TEST(Narrow, SampleDependsOnTheSeedOnly) {
  const auto numbers = [](std::size_t threads) {
    return make_engine(threads).generate(10'000, [](std::uint64_t i) { return i; });
  };
  const auto kept = numbers(1).sample(0.25, 3).collect().value();
  EXPECT_EQ(numbers(8).sample(0.25, 3).collect().value(), kept);
  EXPECT_NE(numbers(1).sample(0.25, 4).collect().value(), kept);
  EXPECT_NEAR(static_cast<double>(kept.size()), 2500, 6 * 43.3);
  EXPECT_EQ(numbers(1).sample(0, 3).count().value(), 0U);
  EXPECT_EQ(numbers(1).sample(1, 3).count().value(), 10'000U);
}

TEST(Narrow, ForEachPartOpensEachPartOnce) {
  const auto engine = make_engine(4, 6);
  std::vector<std::uint64_t> sums(6);
  const auto set = engine.generate(600, [](std::uint64_t i) { return i; });
  const auto done = set.for_each_part(
      [&sums](Part part) { return [&sum = sums[part]](std::uint64_t x) { sum += x; }; });
  ASSERT_TRUE(done);
  for (std::uint64_t part = 0; part < 6; ++part) EXPECT_EQ(sums[part], part * 10'000 + 4950);
}

TEST(Narrow, FlatMapTakesViewsOfARecord) {
  const auto engine = make_engine(2);
  const auto set = engine.collection(std::vector<std::string>{"ab", "", "c"});
  const auto letters = set.flat_map([](const std::string& word) {
    return std::views::transform(word, [](char c) { return std::string(2, c); });
  });
  EXPECT_EQ(letters.collect().value(), (std::vector<std::string>{"aa", "bb", "cc"}));
}

/// The two halves of a text, with its size, as views of it.
std::vector<std::tuple<std::string_view, std::size_t>> halves_of(const std::string& text) {
  const std::string_view all = text;
  return {{all.substr(0, all.size() / 2), all.size()}, {all.substr(all.size() / 2), all.size()}};
}

TEST(Narrow, ViewsOfTextBecomeStrings) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    std::vector<std::string> texts;
    for (const auto& pair : random_pairs(random, size_max, keys)) texts.push_back(pair.first);
    using Half = std::tuple<std::string, std::size_t>;
    std::vector<Half> expected;
    std::map<Half, std::uint64_t> counts;
    for (const std::string& text : texts)
      for (const auto& [half, size] : halves_of(text)) ++counts[expected.emplace_back(half, size)];
    const auto set = engine.collection(texts);
    const auto halves = set.flat_map(halves_of);
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(halves.collect().value())>, std::vector<Half>>);
    EXPECT_EQ(halves.collect().value(), expected);
    const auto is_any = [](const Half&) { return true; };
    EXPECT_EQ(halves.filter(is_any).collect().value(), expected);

    const auto counted = set.flat_map([](const std::string& text) {
      std::vector<std::pair<std::tuple<std::string_view, std::size_t>, std::uint64_t>> pairs;
      for (const auto& half : halves_of(text)) pairs.emplace_back(half, 1);
      return pairs;
    });
    const auto sums = counted.reduce_by_key(std::plus<>{}).collect().value();
    EXPECT_EQ((std::map<Half, std::uint64_t>{sums.begin(), sums.end()}), counts);
    EXPECT_EQ(sums.size(), counts.size());
    // Strings and views meet in one shuffle.
    const auto with_strings = set.flat_map(halves_of).map([](const Half& half) {
      return std::pair{half, std::uint64_t{1}};
    });
    const auto doubled =
        counted.union_with(with_strings).reduce_by_key(std::plus<>{}).collect().value();
    EXPECT_EQ(doubled.size(), counts.size());
    for (const auto& [half, sum] : doubled) EXPECT_EQ(sum, 2 * counts.at(half));

    const auto groups = counted.group_by_key().collect().value();
    EXPECT_EQ(groups.size(), counts.size());
    for (const auto& [half, ones] : groups) EXPECT_EQ(ones.size(), counts.at(half));
  });
}

TEST(Narrow, FusesIntoOneStage) {
  const auto set = make_engine(1, 3).generate(9, [](std::uint64_t i) { return i; });
  EXPECT_EQ(set.map([](auto x) { return x + 1; }).filter([](auto x) { return x > 3; }).plan(),
            "stage 0: generator | map | filter | collect, 3 parts\n");
}

TEST(Fold, AnExceptionOfAnyTypeIsAnError) {
  const auto engine = MapReduce::make({.threads = 1, .parts = 2}).value();
  const auto numbers = engine.generate(4, [](std::uint64_t i) { return i; });
  const auto merge = [](std::uint64_t, std::uint64_t) -> std::uint64_t { throw 7; };
  const auto sum = numbers.fold(std::uint64_t{0}, std::plus<>{}, merge);
  EXPECT_EQ(sum.error().message, "fold: an exception of unknown type");
}

}  // namespace
}  // namespace starling::flow
