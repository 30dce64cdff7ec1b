/// Checkpoints of data sets: their files, and programs that go on from them.
#include "starling/actor/flow/checkpoint.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

/// A folder that the destructor removes.
class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    std::string name = ::testing::TempDir() + "/checkpoint-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string read(const std::string& name) const {
    std::ifstream stream{path(name), std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream{path(name), std::ios::binary} << content;
  }
  /// Returns the sorted names of the files and folders in a folder.
  std::vector<std::string> names(const std::string& name = ".") const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator{path(name)})
      found.push_back(entry.path().filename().string());
    return sorted(std::move(found));
  }

  std::string folder_;
};

struct Tree {
  std::string name;
  std::vector<Tree> children;

  bool operator==(const Tree&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.name, m.children); }
};
enum class Kind : std::uint8_t { small, large };
using Nested = std::tuple<std::optional<Kind>, std::vector<std::vector<bool>>,
                          std::array<std::pair<double, std::string>, 2>, Tree, char>;

TEST_F(CheckpointTest, HasTheSameRecordsInTheSameParts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random = Random::stream(3, seed);
    std::vector<Nested> records(seed == 1 ? 0 : random.below(2000));
    for (auto& [kind, bits, pairs, tree, character] : records) {
      if (random.below(2) == 0) kind = Kind::large;
      bits.resize(random.below(3), std::vector<bool>(random.below(4), true));
      pairs[1] = {random.real(), std::string(random.below(300), 'x')};
      tree = {"root", {{"leaf", {}}, {std::string(random.below(3), '\0'), {{"deep", {}}}}}};
      character = static_cast<char>(random.below(256));
    }
    const MapReduce engine = make_engine(1 + seed % 4, static_cast<Part>(1 + random.below(9)));
    const auto set = engine.collection(records);
    const auto saved = checkpoint(set, path(std::to_string(seed)));
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(saved->collect().value(), records);
    EXPECT_EQ(saved->parts(), set.parts());
    EXPECT_EQ(saved->plan(), "stage 0: checkpoint | collect, " + std::to_string(set.parts()) +
                                 (set.parts() == 1 ? " part\n" : " parts\n"));
    EXPECT_EQ(names(std::to_string(seed)).size(), set.parts() + 1U);
    // Each part has the records that it had.
    EXPECT_EQ(saved->zip_with_index().collect().value(), set.zip_with_index().collect().value());
    const auto count = [](std::uint64_t n, const Nested&) { return n + 1; };
    EXPECT_EQ(saved->fold(std::uint64_t{0}, count, std::plus<>{}).value(), records.size());
  }
}

TEST_F(CheckpointTest, HasRecordsWithoutBytes) {
  const auto set = make_engine(2).collection(std::vector<std::tuple<>>(1000));
  EXPECT_EQ(checkpoint(set, path("a"))->count().value(), 1000U);
  const auto none = MapReduce::make({}).value().generate(0, [](std::uint64_t i) { return i; });
  EXPECT_EQ(checkpoint(none, path("b"))->count().value(), 0U);
}

TEST_F(CheckpointTest, HasNoPartsIfTheSetHasNone) {
  write("empty", "");
  const auto engine = make_engine(2);
  const auto set = engine.text({path("empty")}).value();
  ASSERT_EQ(set.parts(), 0U);
  EXPECT_EQ(checkpoint(set, path("saved"))->count().value(), 0U);
  EXPECT_EQ(checkpoint(set, path("saved"))->parts(), 0U);
}

/// Counts words by length, with a counter of calls.
template <class Engine>
auto lengths(const Engine& engine, std::atomic<int>& calls, std::uint64_t words = 300) {
  return engine
      .generate(words,
                [&calls](std::uint64_t i) {
                  ++calls;
                  return std::pair{i % 7, std::string(i % 5, 'w')};
                })
      .reduce_by_key(std::plus<>{}, 4);
}

TEST_F(CheckpointTest, IsReadByTheSameProgramAtItsNextRun) {
  std::atomic<int> calls = 0;
  const auto first = checkpoint(lengths(make_engine(3), calls), path("saved/")).value();
  const auto expected = first.collect().value();
  EXPECT_EQ(calls, 300);
  const auto files = names("saved");
  EXPECT_EQ(files.front(), "checkpoint");
  EXPECT_EQ(files.back(), "part-00003.records");
  // Neither the number of threads nor the memory counts.
  const auto again =
      checkpoint(lengths(make_engine(1, 5, std::size_t{1} << 20U), calls), path("saved")).value();
  EXPECT_EQ(again.collect().value(), expected);
  EXPECT_EQ(again.map([](const auto& pair) { return pair.first; }).count().value(), 7U);
  EXPECT_EQ(calls, 300);
}

TEST_F(CheckpointTest, IsTheSameWhetherACacheWasComputedOrNot) {
  std::atomic<int> calls = 0;
  const auto engine = make_engine(2);
  const auto program = [&](bool counts) {
    const auto cached = lengths(engine, calls).cache();
    if (counts) {
      EXPECT_EQ(cached.count().value(), 7U);
    }
    return checkpoint(cached.map([](const auto& pair) { return pair.first; }), path("saved"));
  };
  ASSERT_TRUE(program(true));
  EXPECT_TRUE(program(false));
  EXPECT_EQ(calls, 300);
}

TEST_F(CheckpointTest, OfAnotherSetIsAnErrorThatNamesBoth) {
  std::atomic<int> calls = 0;
  const auto engine = make_engine(2);
  ASSERT_TRUE(checkpoint(lengths(engine, calls), path("saved")));
  const auto other = lengths(engine, calls).map([](const auto& pair) { return pair.first; });
  const std::string why = checkpoint(other, path("saved")).error().message;
  EXPECT_TRUE(why.starts_with(path("saved") + ": holds the checkpoint ")) << why;
  EXPECT_NE(why.find(" of 'reduce_by_key' with records (u64, string), but this set is "),
            std::string::npos)
      << why;
  EXPECT_TRUE(why.ends_with(
      " of 'reduce_by_key | map' with records u64; valid: another folder; or remove this one if "
      "it is out of date"))
      << why;
  EXPECT_EQ(calls, 300);
}

TEST_F(CheckpointTest, TellsSetsApartByTheirData) {
  const auto engine = make_engine(2);
  write("text", "a\nb\n");
  const auto text = [&] { return engine.text({path("text")}).value(); };
  const auto numbers = [&](std::vector<int> values) { return engine.collection(values); };
  const auto plus = [](const Set<int>& set, std::uint32_t) -> Set<int> {
    return set.map([](int x) { return x + 1; });
  };
  int made = 0;
  const auto expect_different = [&](const auto& a, const auto& b, const std::string& key = {}) {
    const std::string folder = path("set-" + std::to_string(++made));
    ASSERT_TRUE(checkpoint(a, folder));
    EXPECT_TRUE(checkpoint(a, folder));
    const auto refused = checkpoint(b, folder, key);
    ASSERT_FALSE(refused) << folder;
    EXPECT_NE(refused.error().message.find("holds the checkpoint"), std::string::npos);
  };
  expect_different(numbers({1, 2}), numbers({1, 3}));
  expect_different(numbers({1, 2}), numbers({1, 2}), "k=2");
  expect_different(numbers({1, 2}), engine.collection(std::vector<unsigned>{1, 2}));
  expect_different(Set<int>{numbers({1, 2})}, Set<int>{numbers({2, 1})});
  expect_different(numbers({1, 2}).sample(0.5, 1), numbers({1, 2}).sample(0.5, 2));
  expect_different(numbers({1}).union_with(numbers({2})), numbers({2}).union_with(numbers({1})));
  expect_different(numbers({1, 2}).iterate(2, plus).value(),
                   numbers({1, 2}).iterate(3, plus).value());
  expect_different(numbers({1, 2}).iterate(2, plus).value(),
                   numbers({1, 3}).iterate(2, plus).value());
  expect_different(numbers({1, 2}).cache(),
                   make_engine(2, 6).collection(std::vector{1, 2}).cache());
  const auto before = text();
  write("text", "a\nb\nc\n");
  expect_different(before, text());
  const auto changed = text();
  const auto time = std::filesystem::last_write_time(path("text"));
  std::filesystem::last_write_time(path("text"), time + std::chrono::milliseconds{1});
  expect_different(changed, text());
}

TEST_F(CheckpointTest, DoesNotReplaceWhatIsNoCheckpoint) {
  const auto set = make_engine(2).collection(std::vector{1, 2});
  std::filesystem::create_directory(path("mine"));
  write("mine/file", "x");
  write("file", "x");
  for (const std::string name : {"mine", "file"})
    EXPECT_EQ(checkpoint(set, path(name)).error().message,
              path(name) +
                  ": exists, and is no checkpoint of this version; valid: a new folder, or one "
                  "that checkpoint() has written");
  EXPECT_EQ(read("mine/file") + read("file"), "xx");
  EXPECT_EQ(checkpoint(set, "").error().message,
            "a checkpoint without a folder; valid: a new folder, or one with a checkpoint");
}

TEST_F(CheckpointTest, ComputesNothingIfItCannotBeWritten) {
  std::atomic<int> calls = 0;
  write("file", "x");
  const auto set = lengths(make_engine(2), calls);
  EXPECT_EQ(checkpoint(set, path("file/saved")).error().message,
            path("file/saved") + ": no folder can be made: Not a directory");
  EXPECT_EQ(checkpoint(set, path("gone/saved")).error().message,
            path("gone/saved") + ": no folder can be made: No such file or directory");
  EXPECT_EQ(calls, 0);
}

TEST_F(CheckpointTest, LeavesNothingIfThePlanFails) {
  const auto set = make_engine(2).generate(100, [](std::uint64_t i) {
    if (i == 99) throw std::runtime_error{"a bad record"};
    return i;
  });
  EXPECT_EQ(checkpoint(set, path("saved")).error().message, "generator: record 99: a bad record");
  EXPECT_EQ(names(), std::vector<std::string>{});
}

TEST_F(CheckpointTest, OfAKilledProgramIsNotVisible) {
  std::atomic<int> calls = 0;
  const auto set = make_engine(1).generate(1000, [&calls](std::uint64_t i) {
    ++calls;
    return i;
  });
  const auto killed = set.map([](std::uint64_t i) {
    if (i == 500) ::_exit(7);
    return i;
  });
  const pid_t child = ::fork();
  if (child == 0) {
    (void)checkpoint(killed, path("saved"));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  // The first parts are complete, in a folder with another name.
  ASSERT_EQ(names().size(), 1U);
  EXPECT_TRUE(names()[0].starts_with("saved.starling-"));
  EXPECT_GT(names(names()[0]).size(), 2U);
  const auto again = checkpoint(set, path("saved"));
  EXPECT_EQ(again->count().value(), 1000U);
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(names(), std::vector<std::string>{"saved"});
}

TEST_F(CheckpointTest, EveryDamagedByteIsAnError) {
  const auto engine = make_engine(2, 2);
  const auto saved =
      checkpoint(engine.collection(Pairs{{"a", 1}, {"bc", 2}, {"d", 3}}), path("saved")).value();
  const std::string name = "saved/part-00001.records";
  const std::string good = read(name);
  ASSERT_GT(good.size(), 48U);
  const auto expect_error = [&](const std::string& content) {
    write(name, content);
    const auto records = saved.collect();
    ASSERT_FALSE(records);
    EXPECT_TRUE(records.error().message.starts_with(path(name) + ": block ")) << content.size();
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    expect_error(flipped);
    expect_error(good.substr(0, i));
  }
  expect_error(good + '\0');
  expect_error(good + good);
  expect_error(read("saved/part-00000.records"));
  std::filesystem::remove(path(name));
  EXPECT_EQ(saved.count().error().message,
            path(name) + ": cannot be opened: No such file or directory");
  write(name, good);
  EXPECT_EQ(saved.count().value(), 3U);
}

TEST_F(CheckpointTest, NamesTheDamagedBlock) {
  const auto engine = make_engine(2, 1);
  const auto set = engine.generate(
      100, [](std::uint64_t i) { return std::string(10'000, static_cast<char>('a' + i % 26)); });
  const auto saved = checkpoint(set, path("saved")).value();
  const std::string name = "saved/part-00000.records";
  std::string bytes = read(name);
  bytes[200'000] = '#';
  write(name, bytes);
  // 7 records make a block.
  EXPECT_EQ(saved.count().error().message,
            path(name) +
                ": block 2: its checksum is not that of its bytes; valid: what checkpoint() has "
                "written; try: remove the folder, and compute the records again");
  EXPECT_EQ(saved.take(14)->size(), 14U);
  write(name, bytes.substr(0, 300'000));
  EXPECT_NE(saved.count().error().message.find(": block 2: "), std::string::npos);
}

TEST_F(CheckpointTest, WithADamagedManifestIsAnError) {
  const auto set = make_engine(2, 2).collection(std::vector{1, 2});
  ASSERT_TRUE(checkpoint(set, path("saved")));
  const std::string good = read("saved/checkpoint");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    for (const std::string& bad : {flipped, good.substr(0, i)}) {
      write("saved/checkpoint", bad);
      const auto again = checkpoint(set, path("saved"));
      ASSERT_FALSE(again) << i;
      EXPECT_TRUE(again.error().message.starts_with(path("saved"))) << again.error().message;
    }
  }
}

TEST_F(CheckpointTest, NamesTheRecordAtWhichAFunctionFails) {
  const auto saved =
      checkpoint(make_engine(2, 2).collection(std::vector{1, 2, 3, 4, 5}), path("saved")).value();
  const auto failing = saved.map([](int x) {
    if (x == 4) throw std::runtime_error{"four"};
    return x;
  });
  EXPECT_EQ(failing.count().error().message, path("saved/part-00001.records") + ": record 1: four");
}

/// Adds the round's number to each record; fails in the round `bad`. Counts rounds.
struct Rounds {
  std::uint32_t bad = UINT32_MAX;
  std::vector<std::uint32_t> seen = {};

  auto step() {
    return [this](const Set<std::uint64_t>& set, std::uint32_t round) -> Set<std::uint64_t> {
      seen.push_back(round);
      return set.map([round, last = bad](std::uint64_t x) {
        if (round == last) throw std::runtime_error{"stopped"};
        return 3 * x + round;
      });
    };
  }
};

TEST_F(CheckpointTest, IterateGoesOnFromTheLastOne) {
  const auto engine = make_engine(2);
  const auto set = engine.generate(50, [](std::uint64_t i) { return i; });
  Rounds plain;
  const auto expected = set.iterate(25, plain.step())->collect().value();
  const IterateCheckpoints checkpoints{.folder = path("rounds"), .every = 5};
  std::filesystem::create_directories(path("rounds/round-020"));  // not the name of a checkpoint
  EXPECT_NE(iterate(set, 25, Rounds{.bad = 17}.step(), checkpoints).error().message.find("stopped"),
            std::string::npos);
  EXPECT_EQ(names("rounds"), (std::vector<std::string>{"round-020", "round-10", "round-15"}));
  Rounds rest;
  const auto last = iterate(set, 25, rest.step(), checkpoints);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->collect().value(), expected);
  EXPECT_TRUE(rest.seen.front() == 15 && rest.seen.size() == 10);
  EXPECT_EQ(names("rounds"), (std::vector<std::string>{"round-020", "round-20", "round-25"}));
  // Only the earlier checkpoints of this set are removed, and what is left of one without manifest.
  write((std::filesystem::create_directory(path("rounds/round-3")), "rounds/round-3/mine"), "x");
  const auto other = engine.collection(std::vector<std::uint64_t>{1});
  ASSERT_TRUE(iterate(other, 2, plain.step(), {.folder = path("rounds"), .every = 2}));
  std::filesystem::remove(path("rounds/round-20/checkpoint"));
  // A run of more iterations resumes from there, with another distance of checkpoints.
  Rounds more;
  const auto longer = iterate(set, 29, more.step(), {.folder = path("rounds"), .every = 14});
  EXPECT_EQ(longer->collect().value(), set.iterate(29, plain.step())->collect().value());
  EXPECT_EQ(more.seen, (std::vector<std::uint32_t>{25, 26, 27, 28}));
  EXPECT_EQ(names("rounds"),
            (std::vector<std::string>{"round-020", "round-2", "round-25", "round-28", "round-3"}));
}

TEST_F(CheckpointTest, IterateRefusesTheRoundsOfAnotherSet) {
  const auto engine = make_engine(2);
  Rounds rounds;
  const IterateCheckpoints checkpoints{.folder = path("rounds"), .every = 2};
  ASSERT_TRUE(
      iterate(engine.collection(std::vector<std::uint64_t>{1}), 4, rounds.step(), checkpoints));
  const auto other =
      iterate(engine.collection(std::vector<std::uint64_t>{2}), 4, rounds.step(), checkpoints);
  EXPECT_TRUE(other.error().message.starts_with(path("rounds/round-4") + ": holds the checkpoint "))
      << other.error().message;
  EXPECT_EQ(iterate(engine.collection(std::vector<std::uint64_t>{2}), 4, rounds.step(),
                    {.folder = path("x"), .every = 0})
                .error()
                .message,
            "iterate(): checkpoints every 0 iterations; valid: 1 or more");
}

}  // namespace
}  // namespace starling::flow
