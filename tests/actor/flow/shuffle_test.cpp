/// The operations by key, compared with std::map.
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

TEST(Shuffle, ReduceGroupAndDistinctEqualAMap) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    const Pairs data = random_pairs(random, size_max, keys);
    std::map<std::string, int> sums;
    std::map<std::string, std::vector<int>> groups;
    for (const auto& [key, value] : data) sums[key] += value, groups[key].push_back(value);
    const auto set = engine.collection(data);
    const Part parts = static_cast<Part>(1 + random.below(6));
    EXPECT_EQ(sorted(set.reduce_by_key(std::plus<>{}, parts).collect().value()),
              (Pairs{sums.begin(), sums.end()}));
    EXPECT_EQ(
        sorted(set.group_by_key(parts).collect().value()),
        (std::vector<std::pair<std::string, std::vector<int>>>{groups.begin(), groups.end()}));
    const std::set<std::pair<std::string, int>> different{data.begin(), data.end()};
    EXPECT_EQ(sorted(set.distinct(parts).collect().value()),
              (Pairs{different.begin(), different.end()}));
  });
}

struct ByLength {
  Part parts() const { return 4; }
  Part part_of(const std::string& key) const { return static_cast<Part>(key.size() % 4); }
  std::string print() const { return "length(4)"; }
};

TEST(Shuffle, PartitionByKeepsTheOrderWithinAPart) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    const Pairs data = random_pairs(random, size_max, keys);
    Pairs expected;
    for (Part part = 0; part < 4; ++part)
      for (const auto& pair : data)
        if (ByLength{}.part_of(pair.first) == part) expected.push_back(pair);
    EXPECT_EQ(engine.collection(data).partition_by(ByLength{}).collect().value(), expected);
  });
}

TEST(Shuffle, SortByIsStable) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    const Pairs data = random_pairs(random, size_max, keys);
    Pairs expected = data;
    std::ranges::stable_sort(expected, {}, &std::pair<std::string, int>::first);
    const auto by_key =
        engine.collection(data).sort_by([](const auto& pair) { return pair.first; });
    EXPECT_EQ(by_key.collect().value(), expected);
  });
}

TEST(Shuffle, SortBySpreadsRecordsEvenly) {
  const auto engine = make_engine(2, 8);
  const auto most = [&](auto key) {
    const auto set = engine.generate(80'000, [](std::uint64_t i) { return mix(i); }).sort_by(key);
    std::vector<std::uint64_t> counts(8);
    EXPECT_TRUE(set.for_each_part(
        [&](Part part) { return [&count = counts[part]](std::uint64_t) { ++count; }; }));
    return *std::ranges::max_element(counts);
  };
  EXPECT_LT(most([](std::uint64_t x) { return x; }), 20'000U);
  // All keys are equal: each part of the input goes to a part of its own.
  EXPECT_EQ(most([](std::uint64_t) { return 0; }), 10'000U);
}

TEST(Shuffle, JoinsEqualNestedLoops) {
  for_each_case([](const MapReduce& engine, Random& random, std::size_t size_max, auto keys) {
    const Pairs left = random_pairs(random, size_max / 2, keys);
    const Pairs right = random_pairs(random, size_max / 2, keys);
    using Both = std::pair<std::optional<int>, std::optional<int>>;
    std::map<std::string, std::pair<std::vector<int>, std::vector<int>>> groups;
    for (const auto& [key, value] : left) groups[key].first.push_back(value);
    for (const auto& [key, value] : right) groups[key].second.push_back(value);
    std::vector<std::pair<std::string, Both>> full;
    for (const auto& [key, values] : groups) {
      const auto& [v, w] = values;
      for (const int a : v)
        for (const int b : w) full.push_back({key, {a, b}});
      if (w.empty())
        for (const int a : v) full.push_back({key, {a, std::nullopt}});
      if (v.empty())
        for (const int b : w) full.push_back({key, {std::nullopt, b}});
    }
    std::ranges::sort(full);
    std::vector<std::pair<std::string, std::pair<int, int>>> inner;
    std::vector<std::pair<std::string, std::pair<int, std::optional<int>>>> lefts;
    for (const auto& [key, pair] : full) {
      if (pair.first && pair.second) inner.push_back({key, {*pair.first, *pair.second}});
      if (pair.first) lefts.push_back({key, {*pair.first, pair.second}});
    }
    const auto a = engine.collection(left);
    const auto b = engine.collection(right);
    EXPECT_EQ(sorted(a.full_join(b).collect().value()), full);
    EXPECT_EQ(sorted(a.join(b).collect().value()), inner);
    EXPECT_EQ(sorted(a.left_join(b).collect().value()), lefts);
    using Cogrouped = decltype(groups)::value_type;
    std::vector<std::pair<std::string, Cogrouped::second_type>> expected{groups.begin(),
                                                                         groups.end()};
    EXPECT_EQ(sorted(a.cogroup(b).collect().value()), expected);
  });
}

/// A key whose hash is the same for all keys.
struct Colliding {
  int number = 0;
  auto operator<=>(const Colliding&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.number); }
  friend std::uint64_t hash_value(const Colliding&) { return 42; }
};

TEST(Shuffle, KeysWithEqualHashesStayApart) {
  std::vector<std::pair<Colliding, int>> data;
  for (int i = 0; i < 300; ++i) data.push_back({{i % 7}, 1});
  const auto counts = make_engine(3).collection(data).reduce_by_key(std::plus<>{}).collect();
  std::vector<std::pair<Colliding, int>> expected;
  for (int i = 0; i < 7; ++i) expected.push_back({{i}, 300 / 7 + (i < 300 % 7 ? 1 : 0)});
  EXPECT_EQ(sorted(counts.value()), expected);
}

using Nested = std::tuple<std::vector<std::optional<std::string>>, std::array<int, 2>>;

TEST(Shuffle, KeysMayBeNested) {
  std::vector<std::pair<Nested, double>> data;
  for (int i = 0; i < 100; ++i)
    data.push_back({{{std::nullopt, std::to_string(i % 5)}, {i % 2, 0}}, 0.5});
  const auto sums = make_engine(2).collection(data).reduce_by_key(std::plus<>{}).collect().value();
  ASSERT_EQ(sums.size(), 10U);
  for (const auto& [key, sum] : sums) EXPECT_EQ(sum, 5);
}

/// A pipeline of most operations; its result depends on the order of all records.
std::vector<std::pair<std::string, double>> pipeline(const MapReduce& engine) {
  const auto numbers = engine.generate(30'000, [](std::uint64_t i) {
    return std::pair{"key " + std::to_string(mix(i) % 5000), 1.0 / static_cast<double>(i + 1)};
  });
  return numbers.reduce_by_key(std::plus<>{})
      .join(numbers.group_by_key())
      .map([](const auto& p) {
        double sum = p.second.first;
        for (const double x : p.second.second) sum = sum / 3 + x;
        return std::pair{p.first, sum};
      })
      .sort_by([](const auto& p) { return p.second; })
      .collect()
      .value();
}

TEST(Shuffle, ResultsAreEqualToTheBitWithAnyNumberOfThreads) {
  for (const std::size_t memory : {std::size_t{1} << 20U, std::size_t{1} << 28U}) {
    const auto expected = pipeline(make_engine(1, 6, memory));
    EXPECT_GT(expected.size(), 4900U);
    for (std::size_t threads = 2; threads <= 8; ++threads)
      EXPECT_EQ(pipeline(make_engine(threads, 6, memory)), expected) << threads;
  }
}

/// A key with a default `==`, by which it does not equal itself if it has NaN.
struct Scored {
  std::string name;
  double score = 0;
  bool operator==(const Scored&) const = default;
  bool operator<(const Scored& other) const { return name < other.name; }
  static constexpr auto fields(auto& m) { return std::tie(m.name, m.score); }
};

TEST(Shuffle, NanIsNoKey) {
  const auto engine = make_engine(2);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto expect_refused = [](const auto& result, const std::string& what) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "collection: record 2: the key " + what +
                                          "; valid: numbers; filter() leaves others out");
  };
  const std::string differs = "does not equal itself, as NaN";
  const auto numbers = engine.collection(std::vector{1.0, 2.0, nan, 0.5});
  const auto by_number = numbers.key_by(std::identity{});
  expect_refused(by_number.reduce_by_key(std::plus<>{}).count(), differs);
  expect_refused(by_number.group_by_key().count(), differs);
  expect_refused(by_number.join(by_number).count(), differs);
  expect_refused(numbers.distinct().count(), differs);
  const auto rows =
      engine.collection(std::vector<Scored>{{"d", 1}, {"c", 2}, {"b", nan}, {"a", 3}});
  expect_refused(rows.distinct().count(), differs);
  expect_refused(numbers.sort_by(std::identity{}).count(), "of sort_by() is NaN");
  expect_refused(numbers.sort_by([](double x) {
                          return std::tuple{1, std::vector{x}};
                        })
                     .count(),
                 "of sort_by() is NaN");
  // The user's order of a struct does not compare NaN.
  EXPECT_EQ(rows.sort_by(std::identity{}).take(1).value().front().name, "a");
}

/// A key whose hash is its number.
struct Numbered {
  std::uint64_t number = 0;
  auto operator<=>(const Numbered&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.number); }
  friend std::uint64_t hash_value(const Numbered& key) { return key.number; }
};

TEST(Shuffle, SpreadsKeysOverThePartsWhateverTheirHash) {
  std::vector<int> keys(8);
  for (std::uint64_t number = 0; number < 10'000; ++number)
    ++keys.at(HashPartitioner{8}.part_of(Numbered{number}));
  for (const int count : keys) EXPECT_NEAR(count, 1250, 200);
}

}  // namespace
}  // namespace starling::flow
