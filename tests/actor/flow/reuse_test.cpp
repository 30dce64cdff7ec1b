/// Caches, iterations, broadcasts, errors and spilling.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

TEST(Cache, ComputesASetOnce) {
  std::atomic<int> calls = 0;
  const auto engine = make_engine(3);
  const auto set = engine.generate(100, [&](std::uint64_t i) { return ++calls, i; }).cache();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(set.count().value(), 100U);
  EXPECT_EQ(set.map([](std::uint64_t x) { return x + 1; }).reduce(std::plus<>{}).value(), 5050U);
  EXPECT_EQ(calls, 100);
}

TEST(Cache, IsSharedByBothSidesOfAJoin) {
  std::atomic<int> calls = 0;
  const auto engine = make_engine(2);
  const auto set = engine.generate(50,
                                   [&](std::uint64_t i) {
                                     return ++calls, std::pair{i, i};
                                   })
                       .cache();
  EXPECT_EQ(set.join(set).count().value(), 50U);
  EXPECT_EQ(calls, 50);
}

TEST(Iterate, AppliesEachRoundOnce) {
  std::atomic<int> calls = 0;
  const auto engine = make_engine(2);
  const auto step = [&calls](const Set<int>& set, std::uint32_t round) -> Set<int> {
    return set.map([&calls, round](int x) { return ++calls, 2 * x + static_cast<int>(round); });
  };
  const auto set = engine.collection(std::vector{1, 2, 3}).iterate(4, step);
  EXPECT_EQ(set.value().collect().value(), (std::vector{27, 43, 59}));
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(engine.collection(std::vector{1, 2}).iterate(0, step)->collect().value(),
            (std::vector{1, 2}));
}

TEST(Iterate, EndsAfterTheRoundThatSaysSo) {
  const auto engine = make_engine(2);
  const auto step = [](const Set<int>& set, std::uint32_t) -> Set<int> {
    return set.map([](int x) { return x + 1; });
  };
  int rounds = 0;
  const auto goes_on = [&](const Set<int>& set) -> Result<bool> {
    ++rounds;
    return set.reduce(std::plus<>{}).value() < 10;
  };
  const auto set = engine.collection(std::vector{1, 2}).iterate(100, step, goes_on);
  EXPECT_EQ(set.value().collect().value(), (std::vector{5, 6}));
  EXPECT_EQ(rounds, 4);
  const auto failed =
      engine.collection(std::vector{1}).iterate(3, step, [](const Set<int>&) -> Result<bool> {
        return Error{"enough"};
      });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "enough");
}

/// Each set holds the one that it was made of.
TEST(Cache, ManySetsOnOneAnotherAreDestroyedWithoutADeepStack) {
  const auto engine = make_engine(1);
  Set<int> set = engine.collection(std::vector{1});
  for (int i = 0; i < 200'000; ++i) set = set.map([](int x) { return x; }).cache();
}

TEST(Iterate, ReleasesTheCachesOfEarlierRounds) {
  // A megabyte a round. If all rounds were held, they would not fit into 8 MiB and would spill.
  const auto engine = make_engine(2, 4, std::size_t{8} << 20U);
  const auto set = engine.generate(100'000, [](std::uint64_t i) { return i; });
  const auto last = set.iterate(20, [](const Set<std::uint64_t>& s, auto) -> Set<std::uint64_t> {
    return s.map([](std::uint64_t x) { return x + 1; });
  });
  EXPECT_EQ(last->take(1).value(), std::vector<std::uint64_t>{20});
  EXPECT_EQ(engine.spilled_bytes(), 0U);
}

TEST(Broadcast, IsReadByAllTasks) {
  const auto engine = make_engine(2);
  const auto names = engine.broadcast(std::vector<std::string>{"no", "yes"});
  const auto set = engine.generate(4, [](std::uint64_t i) { return i; });
  EXPECT_EQ(set.map([names](std::uint64_t i) { return (*names)[i % 2]; }).collect().value(),
            (std::vector<std::string>{"no", "yes", "no", "yes"}));
}

int refuse(int x, int bad) {
  if (x == bad) throw std::runtime_error{"a bad record"};
  return x;
}

TEST(Failure, NamesTheRecordAfterARetry) {
  const auto engine = make_engine(4, 3);
  std::vector<int> data(1000);
  for (int i = 0; i < 1000; ++i) data[static_cast<std::size_t>(i)] = i;
  std::atomic<int> attempts = 0;
  const Set<int> set = engine.collection(data);  // a batch would hide which record it was
  const auto failing = set.map([&attempts](int x) { return attempts += x == 701, refuse(x, 701); });
  EXPECT_EQ(failing.count().error().message, "collection: record 701: a bad record");
  EXPECT_EQ(attempts, 2);
  const auto grouped = set.map([](int x) {
                            return std::pair{x % 10, x};
                          })
                           .reduce_by_key(std::plus<>{}, 1);
  const auto late = grouped.map([](const auto& p) { return refuse(p.first, 0); }).collect();
  EXPECT_TRUE(late.error().message.starts_with("reduce_by_key: part 0, record "));
  EXPECT_TRUE(late.error().message.ends_with(": a bad record"));
}

TEST(Failure, ARetryThatSucceedsLeavesNoTrace) {
  std::atomic<bool> has_failed = false;
  const auto set = make_engine(2).generate(1000, [](std::uint64_t i) { return i; });
  const auto flaky = set.map([&](std::uint64_t i) {
    if (i == 500 && !has_failed.exchange(true)) throw 7;
    return std::pair{i % 3, std::uint64_t{1}};
  });
  const auto counts = flaky.reduce_by_key(std::plus<>{}).collect().value();
  EXPECT_EQ(sorted(counts),
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 334}, {1, 333}, {2, 333}}));
}

TEST(Failure, ActionsMayRunInTasks) {
  const auto engine = make_engine(2);
  const auto inner = engine.generate(10, [](std::uint64_t i) { return i; });
  const auto outer = engine.generate(3, [inner](std::uint64_t) { return inner.count().value(); });
  EXPECT_EQ(outer.collect().value(), (std::vector<std::uint64_t>(3, 10)));
}

struct BadPartitioner {
  Part parts() const { return 2; }
  Part part_of(int) const { return 2; }
  std::string print() const { return "bad(2)"; }
};

TEST(Failure, NamesAPartThatAPartitionerMayNotChoose) {
  const auto set = make_engine(1, 1).collection(std::vector{std::pair{1, 2}});
  EXPECT_EQ(set.partition_by(BadPartitioner{}).count().error().message,
            "collection: record 0: the partitioner bad(2) returned part 2; valid: less than 2");
}

TEST(Options, NameTheWrongValue) {
  const auto error = [](MapReduceOptions options) {
    return MapReduce::make(std::move(options)).error().message;
  };
  EXPECT_EQ(error({.threads = 0}), "threads: 0 is out of range; valid: 1 to 32");
  EXPECT_EQ(error({.parts = 0}), "parts: 0 is out of range; valid: 1 to 1000000");
  EXPECT_EQ(error({.memory_bytes = 5}), "memory_bytes: 5 is out of range; valid: 1048576 or more");
  EXPECT_EQ(error({.spill_folder = "/nowhere"}),
            "spill_folder: '/nowhere' is not a folder; valid: a folder that exists");
  const char* const former = std::getenv("TMPDIR");
  const std::string saved = former != nullptr ? former : "";
  ASSERT_EQ(::setenv("TMPDIR", "/nowhere", 1), 0);
  EXPECT_EQ(error({}),
            "spill_folder: none is given, and the system's folder for temporary files, TMPDIR or "
            "/tmp, is not a folder; valid: a folder that exists");
  ASSERT_EQ(former != nullptr ? ::setenv("TMPDIR", saved.c_str(), 1) : ::unsetenv("TMPDIR"), 0);
}

/// Many keys with long values: much more than the memory limit of 1 MiB.
template <class Engine>
auto big_set(const Engine& engine) {
  return engine.generate(40'000, [](std::uint64_t i) {
    return std::pair{mix(i) % 20'000, std::string(100, static_cast<char>('a' + i % 26))};
  });
}

TEST(Spilling, ChangesNoResult) {
  const auto small = make_engine(2, 4, std::size_t{1} << 20U);
  const auto large = make_engine(2, 4);
  const auto check = [&](auto operation) {
    const std::uint64_t before = small.spilled_bytes();
    EXPECT_EQ(operation(big_set(small)).collect().value(),
              operation(big_set(large)).collect().value());
    EXPECT_GT(small.spilled_bytes(), before);
  };
  check([](const auto& set) { return set.group_by_key(); });
  check([](const auto& set) { return set.reduce_by_key(std::plus<>{}); });
  check([](const auto& set) { return set.sort_by([](const auto& p) { return p.second; }); });
  check([](const auto& set) { return set.cache(); });
  check([](const auto& set) { return set.partition_by(HashPartitioner{3}); });
  check([](const auto& set) { return set.join(set); });
  EXPECT_EQ(large.spilled_bytes(), 0U);
}

TEST(Spilling, MergesMoreRunsThanAtOnce) {
  // Each of 100 tasks makes a run for the one part.
  const auto engine = make_engine(2, 100, std::size_t{1} << 20U);
  const auto keys = big_set(engine).sort_by([](const auto& p) { return p.first; }, 1);
  const auto result = keys.map([](const auto& p) { return p.first; }).collect().value();
  EXPECT_EQ(result.size(), 40'000U);
  EXPECT_TRUE(std::ranges::is_sorted(result));
}

TEST(Spilling, MergedRunsTakeSpaceForOnePartAtATime) {
  // About 4 MB are spilled in 245 runs for each part, so most of them are merged and spilled again.
  const auto engine = MapReduce::make({.threads = 1,
                                       .parts = 8,
                                       .memory_bytes = std::size_t{1} << 20U,
                                       .spill_bytes_max = 5'000'000})
                          .value();
  const auto sorted =
      engine.generate(500'000, [](std::uint64_t i) { return mix(i); }).sort_by(std::identity{});
  const auto result = sorted.collect().value();
  EXPECT_EQ(result.size(), 500'000U);
  EXPECT_TRUE(std::ranges::is_sorted(result));
  EXPECT_GT(engine.spilled_bytes(), 6'000'000U);
}

TEST(Spilling, LeavesNoFilesAndHasABound) {
  const std::filesystem::path folder = std::filesystem::path{::testing::TempDir()} / "spill_bound";
  std::filesystem::create_directory(folder);
  const auto engine = MapReduce::make({.threads = 2,
                                       .parts = 4,
                                       .memory_bytes = std::size_t{1} << 20U,
                                       .spill_folder = folder.string(),
                                       .spill_bytes_max = 1'000'000})
                          .value();
  EXPECT_EQ(big_set(engine).group_by_key().count().error().message,
            folder.string() +
                ": spilled data takes more than 1000000 bytes; try: a higher spill_bytes_max, or "
                "more memory");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace starling::flow
