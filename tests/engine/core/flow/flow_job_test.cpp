/// Runs flows on members in virtual time, and compares their results with those of one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/output_folder.hpp"
#include "starling/actor/flow/save_text.hpp"
#include "starling/actor/flow/thread_runner.hpp"
#include "tests/engine/core/flow/flow_cluster.hpp"
#include "tests/engine/core/flow/flow_programs.hpp"
#include "tests/tools/folder.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

/// Returns what the program returns on one thread.
std::string sequential(const FlowProgram& program) {
  const auto runner = std::make_shared<flow::ThreadRunner>(
      flow::ThreadRunnerOptions{.threads = 1, .default_parts = 3},
      std::make_shared<TestTaskMemory>(std::size_t{1} << 20U));
  auto outcome = program(runner);
  return outcome ? *outcome : "error: " + outcome.error().message;
}

/// Counts words, and looks at the result twice.
Result<std::string> count_words(const std::shared_ptr<flow::Runner>& runner) {
  const flow::TestEngine engine{runner};
  const auto counts = engine.records(1, 200, 12, 8)
                          .map([](const auto& pair) {
                            return std::pair{pair.first, 1};
                          })
                          .reduce_by_key(std::plus<>{}, 4)
                          .cache();
  const auto count = counts.count();
  if (!count) return count.error();
  const auto all = counts.collect();
  if (!all) return all.error();
  std::string text = std::to_string(*count) + ":";
  for (const auto& [word, number] : *all) text += " " + word + "=" + std::to_string(number);
  return text;
}

/// Expects that all members that are left have the result of one thread.
void expect_result(FlowCluster& cluster, const std::string& expected) {
  ASSERT_TRUE(cluster.run()) << "does not end";
  EXPECT_TRUE(cluster.failures().empty()) << cluster.failures().front();
  ASSERT_FALSE(cluster.members().empty());
  for (const MemberId id : cluster.members()) {
    const auto& outcome = cluster.outcome(id);
    EXPECT_EQ(outcome ? *outcome : "error: " + outcome.error().message, expected) << id;
  }
}

TEST(FlowJob, GivesTheResultOfOneThreadToEveryMember) {
  const std::string expected = sequential(count_words);
  EXPECT_EQ(expected.substr(0, 3), "12:");
  for (const MemberId members : {1U, 2U, 4U, 7U}) {
    FlowCluster cluster{{.members = members}, count_words};
    expect_result(cluster, expected);
    // 8 parts are counted, 4 reduced and cached, and these are read by two actions.
    EXPECT_EQ(cluster.computed().size(), 8U + 4U + 4U + 4U);
    for (const auto& [part, times] : cluster.computed())
      EXPECT_EQ(times, 1) << part.stage.action << "." << part.stage.stage << "." << part.part;
  }
}

TEST(FlowJob, EndsOverABadNetwork) {
  FlowCluster cluster{{.members = 5, .loss = 0.2}, count_words};
  expect_result(cluster, sequential(count_words));
}

TEST(FlowJob, ComputesTheLostPartsOfADeadMemberAgain) {
  const std::string expected = sequential(count_words);
  for (int ms = 1; ms < 120; ms += 6) {
    SCOPED_TRACE(ms);
    FlowCluster cluster{{.members = 4, .seed = static_cast<std::uint64_t>(ms)}, count_words};
    cluster.at(std::chrono::milliseconds{ms}, [&] { cluster.kill(2); });
    expect_result(cluster, expected);
    int again = 0;
    for (const auto& [part, times] : cluster.computed()) again += times - 1;
    EXPECT_LE(again, 12) << "more than a member can have had";
  }
}

TEST(FlowJob, SurvivesTheDeathOfTheCoordinator) {
  const std::string expected = sequential(count_words);
  for (int ms = 1; ms < 100; ms += 6) {
    SCOPED_TRACE(ms);
    FlowCluster cluster{{.members = 4, .seed = static_cast<std::uint64_t>(ms)}, count_words};
    cluster.at(std::chrono::milliseconds{ms}, [&] { cluster.kill(*cluster.coordinator()); });
    expect_result(cluster, expected);
    EXPECT_EQ(cluster.members().size(), 3U);
  }
}

TEST(FlowJob, GivesItsResultToAMemberThatJoins) {
  const std::string expected = sequential(count_words);
  for (int ms = 1; ms < 120; ms += 6) {
    SCOPED_TRACE(ms);
    FlowCluster cluster{{.members = 3, .seed = static_cast<std::uint64_t>(ms)}, count_words};
    cluster.at(std::chrono::milliseconds{ms}, [&] { cluster.join(5); });
    expect_result(cluster, expected);
  }
}

TEST(FlowJob, GivesSlowTasksToSecondMembers) {
  const std::string expected = sequential(count_words);
  const auto seconds_with = [&](Time after_min) {
    FlowCluster cluster{{.members = 4, .speculation_after_min = after_min}, count_words};
    cluster.slow_down(2, 200);
    expect_result(cluster, expected);
    return cluster.now();
  };
  // A task of the slow member takes a second, and one of the others 5 ms.
  EXPECT_GT(seconds_with(std::chrono::hours{1}), 500ms);
  EXPECT_LT(seconds_with(20ms), 250ms);
}

TEST(FlowJob, AsksOncePerMemberForTheManyPiecesOfAShuffle) {
  int requests = 0;
  int pieces = 0;
  FlowClusterOptions options;
  options.members = 3;
  options.chunk_bytes = std::size_t{1} << 20U;
  options.on_read = [&](const PieceRequest& request) {
    ++requests;
    pieces += static_cast<int>(request.pieces.size());
  };
  const FlowProgram program =
      [](const std::shared_ptr<flow::Runner>& runner) -> Result<std::string> {
    const auto count =
        flow::TestEngine{runner}.records(1, 900, 300, 60).reduce_by_key(std::plus<>{}, 50).count();
    return count ? Result<std::string>{std::to_string(*count)} : count.error();
  };
  FlowCluster cluster{options, program};
  expect_result(cluster, sequential(program));
  // A task fetches about 40 of the 60 parts, from two members.
  EXPECT_GT(pieces, 1500);
  EXPECT_LT(requests, pieces / 4);
}

TEST(FlowJob, TriesAFailedTaskAgainOnceAndThenEndsWithItsError) {
  int failures = 0;
  FlowClusterOptions options;
  options.on_task = [&](MemberId, const PartName& task) {
    if (task == PartName{{0, 0}, 3} && failures > 0 && failures-- > 0)
      throw std::runtime_error{"line 7: no number"};
  };
  failures = 1;
  FlowCluster once{options, count_words};
  expect_result(once, sequential(count_words));
  failures = 2;
  FlowCluster twice{options, count_words};
  expect_result(twice, "error: line 7: no number");
}

TEST(FlowJob, RefusesMembersWithOtherPrograms) {
  int programs = 0;
  FlowCluster cluster{{.members = 3}, [&](const std::shared_ptr<flow::Runner>& runner) {
                        if (programs++ < 2) return count_words(runner);
                        const auto count = flow::TestEngine{runner}.records(1, 5, 5, 2).count();
                        return count ? Result<std::string>{"counted"} : count.error();
                      }};
  ASSERT_TRUE(cluster.run());
  for (const MemberId id : cluster.members()) {
    ASSERT_FALSE(cluster.outcome(id)) << id;
    EXPECT_NE(cluster.outcome(id).error().message.find("runs another program"), std::string::npos)
        << cluster.outcome(id).error().message;
  }
}

TEST(FlowJob, RefusesResultsThatCannotTravel) {
  struct NoRecord {
    std::shared_ptr<int> pointer;
  };
  FlowCluster cluster{{.members = 2}, [](const std::shared_ptr<flow::Runner>& runner) {
                        const auto sums =
                            flow::TestEngine{runner}
                                .records(1, 5, 5, 2)
                                .fold(
                                    NoRecord{}, [](NoRecord sum, const auto&) { return sum; },
                                    [](const NoRecord& sum, const NoRecord&) { return sum; });
                        return sums ? Result<std::string>{"summed"} : sums.error();
                      }};
  expect_result(cluster,
                "error: collection | fold: its results cannot be sent to other nodes; valid: "
                "results that are records");
}

TEST(FlowJob, GoesOnAfterAnActionThatWasRefused) {
  struct NoRecord {};
  const FlowProgram program =
      [](const std::shared_ptr<flow::Runner>& runner) -> Result<std::string> {
    const flow::TestEngine engine{runner};
    const auto cached = engine.records(1, 50, 5, 3).distinct(2).cache();
    const auto sums = cached.fold(
        std::make_shared<NoRecord>(), [](auto sum, const auto&) { return sum; },
        [](const auto& sum, const auto&) { return sum; });
    const auto other = engine.records(2, 20, 3, 2).reduce_by_key(std::plus<>{}, 2).count();
    const auto count = cached.count();
    if (!other || !count) return Error{"no count"};
    return std::to_string(*other) + " " + std::to_string(*count);
  };
  FlowCluster cluster{{.members = 3}, program};
  expect_result(cluster, sequential(program));
}

TEST(FlowJob, HoldsNoMoreThanTheResultsInTheEnd) {
  // The records of all rounds together take more than a hundred times what the last one does.
  const FlowProgram program =
      [](const std::shared_ptr<flow::Runner>& runner) -> Result<std::string> {
    const auto last =
        flow::TestEngine{runner}
            .records(1, 400, 400, 4)
            .iterate(40, [](const flow::Records& set, std::uint32_t) -> flow::Records {
              return set.reduce_by_key(std::plus<>{}, 4);
            });
    if (!last) return last.error();
    const auto count = last->count();
    return count ? Result<std::string>{std::to_string(*count)} : count.error();
  };
  FlowCluster cluster{{.members = 3}, program};
  cluster.at(5s, [&] { cluster.kill(1); });
  // Members drop again what they compute again after the death.
  std::size_t least = SIZE_MAX;
  for (Time at = 5500ms; at < 7s; at += 5ms)
    cluster.at(at, [&] { least = std::min(least, cluster.reserved()); });
  expect_result(cluster, sequential(program));
  EXPECT_LT(cluster.peak_reserved(), 12U * 400U * 64U) << "bytes on one member";
  EXPECT_LT(least, 5000U) << "bytes on one member; one round takes 2848";
}

/// Plans the faults of a seed: deaths of less than half of the members, cuts, joins, slow members.
void plan_faults(FlowCluster& cluster, std::uint64_t seed, MemberId members) {
  Random random = Random::stream(13, seed);
  const auto draw_time = [&random] { return std::chrono::milliseconds{1 + random.below(400)}; };
  const std::uint64_t deaths = random.below((members + 1) / 2);
  for (std::uint64_t i = 0; i < deaths; ++i)
    cluster.at(draw_time(), [&cluster, id = static_cast<MemberId>(random.below(members))] {
      // The council needs a majority of its members.
      if (id == 0 || cluster.members().size() > 3) cluster.kill(id);
    });
  if (random.below(3) == 0) cluster.at(draw_time(), [&cluster, members] { cluster.join(members); });
  if (random.below(3) == 0) cluster.slow_down(static_cast<MemberId>(random.below(members)), 20);
  if (random.below(3) == 0) {
    const auto cut = static_cast<MemberId>(random.below(members));
    const auto from = draw_time();
    cluster.at(from, [&cluster, cut, members] {
      for (MemberId id = 0; id < members; ++id)
        if (id != cut) cluster.block(id, cut);
    });
    cluster.at(from + draw_time(), [&cluster] { cluster.heal(); });
  }
}

/// An error that a run makes on purpose, to show that the checks see it.
enum class Sabotage {
  none,
  /// A piece of another part is sent.
  counts_a_part_twice,
  /// An output that was computed again is sent as an empty one, as if nothing were left to make it
  /// of.
  cuts_lineage,
  /// The folder of the result gets its name before it has all parts.
  commits_early,
};

/// Sends the first piece of another output instead, if there is one.
void swap_part(PieceChunk& chunk, OutputStore& store) {
  for (flow::Part part = 0; part < 8; ++part) {
    PieceName other = chunk.piece;
    other.output.part = part;
    PieceChunk wrong = store.execute(ReadPieces{15, {0, {other}, 0}}).chunks.front();
    if (part == chunk.piece.output.part || wrong.is_missing) continue;
    wrong.piece = chunk.piece;
    chunk = wrong;
    return;
  }
}

/// A folder in which the members of a job save a set.
class SavedFolder {
 public:
  /// Saves the set, as each member does.
  Result<std::uint64_t> save(const flow::Records& set, Sabotage sabotage) const {
    auto output = flow::OutputFolder::shared((folder_.path() / "saved").string(), "token");
    if (!output) return std::move(output).error();
    if (sabotage == Sabotage::commits_early && !folder_.has("saved"))
      std::filesystem::rename(folder_.path() / "saved.starling-token", folder_.path() / "saved");
    return flow::save_text(set, *output);
  }
  [[nodiscard]] bool is_there() const { return folder_.has("saved"); }
  /// Returns the lines of all parts, in order.
  [[nodiscard]] std::string text() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{folder_.path() / "saved"})
      files.push_back(std::filesystem::path{"saved"} / entry.path().filename());
    std::ranges::sort(files);
    std::string text;
    for (const auto& file : files) text += folder_.read(file.string());
    return text;
  }
  /// Returns the names of what is left beside the folder.
  [[nodiscard]] std::vector<std::string> leftovers() const {
    std::vector<std::string> names = folder_.names();
    std::erase(names, "saved");
    return names;
  }

 private:
  program::Folder folder_;
};

/// Returns an empty text, or what went wrong.
std::string run_seed(std::uint64_t seed, Sabotage sabotage = Sabotage::none) {
  Random random = Random::stream(17, seed);
  FlowClusterOptions options;
  options.members = static_cast<MemberId>(3 + random.below(4));
  options.seed = seed;
  options.loss = random.below(2) == 0 ? 0 : 0.15 * random.real();
  options.slots = static_cast<std::uint32_t>(1 + random.below(3));
  options.memory_bytes = random.below(3) == 0 ? 2000 : std::size_t{1} << 20U;
  options.chunk_bytes = 20 + random.below(2000);
  options.speculation_after_min = 20ms;
  std::string saved;
  const auto expected = sequential([&](const std::shared_ptr<flow::Runner>& runner) {
    return flow::run_random_program(runner, seed,
                                    [&](const flow::Records& set) -> Result<std::uint64_t> {
                                      const auto all = set.collect();
                                      if (!all) return all.error();
                                      for (const auto& record : *all)
                                        saved += flow::line_of(record) + "\n";
                                      return all->size();
                                    });
  });
  const SavedFolder folder;
  bool is_early = false;
  std::optional<FlowCluster> cluster;
  options.on_chunk = [&](PieceChunk& chunk, OutputStore& store) {
    if (sabotage == Sabotage::counts_a_part_twice) swap_part(chunk, store);
    if (sabotage != Sabotage::cuts_lineage || chunk.is_missing) return;
    const auto times = cluster->computed().find(chunk.piece.output);
    if (times != cluster->computed().end() && times->second > 1)
      chunk = {.piece = chunk.piece, .chunk = chunk.chunk, .is_last = true};
  };
  options.on_task = [&](MemberId, const PartName&) {
    is_early |= folder.is_there() && folder.text() != saved;
  };
  cluster.emplace(options, [&](const std::shared_ptr<flow::Runner>& runner) {
    return flow::run_random_program(
        runner, seed, [&](const flow::Records& set) { return folder.save(set, sabotage); });
  });
  plan_faults(*cluster, seed, options.members);
  if (!cluster->run()) return "does not end";
  if (!cluster->failures().empty()) return cluster->failures().front();
  if (cluster->members().empty()) return "no member is left";
  for (const MemberId id : cluster->members()) {
    const auto& outcome = cluster->outcome(id);
    if (!outcome) return "member " + std::to_string(id) + ": " + outcome.error().message;
    if (*outcome != expected) return "member " + std::to_string(id) + " has another result";
  }
  if (!folder.is_there()) return "the set is not saved";
  if (folder.text() != saved) return "the saved set has other records";
  if (is_early) return "the set is incomplete under its name";
  const auto leftovers = folder.leftovers();
  return leftovers.empty() ? "" : "left behind: " + leftovers.front();
}

TEST(FlowChaos, GivesTheResultOfOneThread) {
  const std::uint64_t first = flow::number_from("STARLING_FLOW_FIRST", 1);
  const std::uint64_t last = flow::number_from("STARLING_FLOW_SEEDS", 300);
  ASSERT_LE(first, last) << "STARLING_FLOW_SEEDS is the last seed";
  int wrong = 0;
  for (std::uint64_t seed = first; seed <= last && wrong < 10; ++seed) {
    const std::string why = run_seed(seed);
    EXPECT_EQ(why, "") << "seed " << seed;
    wrong += why.empty() ? 0 : 1;
  }
}

TEST(FlowChaos, SeesSabotage) {
  for (const Sabotage sabotage :
       {Sabotage::counts_a_part_twice, Sabotage::cuts_lineage, Sabotage::commits_early}) {
    std::uint64_t seed = 1;
    while (seed <= 1000 && run_seed(seed, sabotage).empty()) ++seed;
    EXPECT_LE(seed, 1000U) << "sabotage " << static_cast<int>(sabotage);
  }
}

}  // namespace
}  // namespace starling::core
