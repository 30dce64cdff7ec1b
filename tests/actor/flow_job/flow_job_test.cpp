/// Runs flows on two nodes of one process, which exchange packets by function calls.
#include "starling/actor/flow_job/flow_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/flow/checkpoint.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "tests/waiting.hpp"

namespace starling::actor {
namespace {

using State = MemberReport::State;

/// A job with members 0 and 1 on node 0, and members 2 and 3 on node 1. Member 3 is the
/// coordinator.
class TwoNodes {
 public:
  /// If `holds`, packets from node 1 to node 0 wait for release().
  explicit TwoNodes(const FlowProgram& program, std::size_t threads = 2, bool holds = false)
      : holds_(holds) {
    std::vector<core::Member> members;
    for (core::MemberId id = 0; id < 4; ++id) members.push_back({id, 1, id != 3, id == 0, id / 2});
    const auto first =
        std::make_shared<const core::Configuration>(core::first_configuration(members, 0, 1, true));
    for (std::size_t node = 0; node < 2; ++node) {
      FlowJobOptions options{.program = program, .workers = 3, .engine = {}, .wait_for_nodes = {}};
      options.engine.threads = threads;
      options.engine.parts = 6;
      options.wait_for_nodes = std::chrono::seconds{30};
      LocalJobOptions local;
      local.send = [this](std::vector<core::Envelope> envelopes) { send(std::move(envelopes)); };
      jobs_[node] = make_flow_job(std::move(options), std::move(local)).value();
      jobs_[node]->add_initial_members({members[2 * node], members[2 * node + 1]}, first);
    }
    for (const auto& job : jobs_) job->start_members();
  }
  ~TwoNodes() {
    kill(0);
    kill(1);
  }
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;

  /// The node is gone; no packet reaches it any more.
  void kill(std::size_t node) {
    std::shared_ptr<LocalJob> gone;
    {
      const std::lock_guard lock{mutex_};
      gone = std::exchange(jobs_[node], nullptr);
    }
    // Threads that deliver a packet at this moment have a reference too.
    EXPECT_TRUE(wait_until([&] { return gone.use_count() <= 1; }));
  }
  void release() {
    std::vector<core::Envelope> held;
    {
      const std::lock_guard lock{mutex_};
      holds_ = false;
      held = std::exchange(held_, {});
    }
    send(std::move(held));
  }
  [[nodiscard]] LocalJob& operator[](std::size_t node) { return *jobs_[node]; }
  /// True if all members of the node have this state.
  [[nodiscard]] bool all_are(std::size_t node, State state) {
    return std::ranges::all_of(jobs_[node]->reports(), [state](const MemberReport& report) {
      return report.state == state;
    });
  }
  /// Lets the members of a node suspect those of the other, as failure detection does.
  void suspect_other(std::size_t node) {
    for (core::MemberId id = 0; id < 2; ++id)
      jobs_[node]->report_liveness({static_cast<core::MemberId>(2 * (1 - node)) + id, 1, true});
  }

 private:
  void send(std::vector<core::Envelope> envelopes) {
    for (core::Envelope& envelope : envelopes) {
      std::shared_ptr<LocalJob> job;
      {
        const std::lock_guard lock{mutex_};
        if (holds_ && envelope.to / 2 == 0 && envelope.from / 2 == 1) {
          held_.push_back(std::move(envelope));
          continue;
        }
        job = jobs_.at(envelope.to / 2);
      }
      if (job) job->deliver(std::move(envelope), false);
    }
  }

  std::mutex mutex_;
  bool holds_;
  std::vector<core::Envelope> held_;
  std::array<std::shared_ptr<LocalJob>, 2> jobs_;
};

/// Counts the numbers below 3000 by their remainder, and looks at the result twice.
Result<wire::FlowResult> count_remainders(const flow::MapReduce& engine) {
  const auto counts = engine.generate(3000,
                                      [](std::uint64_t i) {
                                        return std::pair{i % 7, 1};
                                      })
                          .reduce_by_key(std::plus<>{})
                          .cache();
  const auto count = counts.count();
  if (!count) return count.error();
  const auto all = counts.sort_by([](const auto& pair) { return pair.first; }).collect();
  if (!all) return all.error();
  wire::FlowResult result;
  result.lines = *count;
  for (const auto& [remainder, number] : *all)
    result.first_lines.push_back(std::to_string(remainder) + "=" + std::to_string(number));
  return result;
}
const std::vector<std::string> remainders{"0=429", "1=429", "2=429", "3=429",
                                          "4=428", "5=428", "6=428"};

TEST(FlowOnNodes, GivesItsResultOnEachNode) {
  TwoNodes nodes{count_remainders};
  for (const std::size_t node : {0U, 1U}) {
    ASSERT_TRUE(wait_until([&] { return nodes.all_are(node, State::done); }));
    const auto result = nodes[node].result();
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->is_known);
    EXPECT_EQ(result->lines, 7U);
    EXPECT_EQ(result->first_lines, remainders);
  }
  // Each part was computed somewhere; a slow one, perhaps twice.
  std::map<std::string, flow::TaskCounts> counts;
  for (const std::size_t node : {0U, 1U}) {
    const core::FlowReport report = nodes[node].flow_report();
    EXPECT_EQ(report.actions, nodes[0].flow_report().actions);
    EXPECT_EQ(report.parts_again, 0U);
    EXPECT_FALSE(report.has_taken_over);
    for (const core::StageTotals& stage : report.totals)
      counts[stage.description.operations] += stage.counts;
  }
  EXPECT_GE(counts["generator | reduce_by_key"].records_read, 3000U);
  EXPECT_GE(counts["generator | reduce_by_key"].records_written, 6U * 7);
}

TEST(FlowOnNodes, ReportsWhyAProgramFailed) {
  TwoNodes nodes{[](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    const auto count = engine
                           .generate(10,
                                     [](std::uint64_t i) {
                                       if (i == 7) throw std::runtime_error{"not 7"};
                                       return i;
                                     })
                           .count();
    if (!count) return count.error();
    return wire::FlowResult{};
  }};
  for (const std::size_t node : {0U, 1U}) {
    ASSERT_TRUE(wait_until([&] { return nodes.all_are(node, State::failed); }));
    for (const MemberReport& report : nodes[node].reports())
      EXPECT_EQ(report.why, "generator: record 7: not 7");
    EXPECT_FALSE(nodes[node].result());
  }
}

TEST(FlowOnNodes, EndsWhenItIsStopped) {
  std::atomic<int> begun = 0;
  TwoNodes nodes{[&](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    for (;;) {
      ++begun;
      const auto count = engine.generate(100, [](std::uint64_t i) { return i; }).count();
      if (!count) return count.error();
    }
  }};
  ASSERT_TRUE(wait_until([&] { return begun > 20; }));
  nodes[1].stop();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(1, State::done); }));
  EXPECT_FALSE(nodes.all_are(0, State::failed));
  nodes[0].stop();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(0, State::done); }));
  EXPECT_FALSE(nodes[0].result());
}

TEST(FlowOnNodes, CallsNoFunctionOfAProgramThatHasReturned) {
  using namespace std::chrono_literals;
  std::atomic<int> returned = 0;
  std::atomic<int> late_calls = 0;
  TwoNodes nodes{[&](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
                   const auto has_returned = std::make_shared<std::atomic<bool>>(false);
                   const auto count = engine
                                          .generate(600,
                                                    [&late_calls, has_returned](std::uint64_t i) {
                                                      if (*has_returned) ++late_calls;
                                                      return i;
                                                    })
                                          .count();
                   *has_returned = true;
                   ++returned;
                   if (!count) return count.error();
                   return wire::FlowResult{};
                 },
                 2, true};
  ASSERT_TRUE(wait_until([&] { return nodes[0].flow_report().actions == 1; }));
  std::this_thread::sleep_for(100ms);  // the orders to node 0 are on their way
  nodes[0].stop();
  ASSERT_TRUE(wait_until([&] { return returned >= 2; }));
  nodes.release();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(late_calls, 0);
}

TEST(FlowOnNodes, EndsWhenItIsStoppedBeforeItBegins) {
  const auto first = std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, 0}}, 0, 1, true));
  FlowJobOptions options{.program = count_remainders,
                         .workers = 1,
                         .engine = {},
                         .wait_for_nodes = std::chrono::seconds{30}};
  const auto job = make_flow_job(std::move(options), {}).value();
  job->add_initial_members({{0, 1, true, true, 0}}, first);
  job->stop();
  job->start_members();
  EXPECT_TRUE(wait_until([&] { return job->reports().front().state == State::done; }));
}

TEST(FlowOnNodes, GoesOnWhenANodeDies) {
  std::atomic<int> begun = 0;
  TwoNodes nodes{[&](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    for (int round = 0; round < 30; ++round) {
      ++begun;
      const auto result = count_remainders(engine);
      if (!result) return result.error();
    }
    return count_remainders(engine);
  }};
  ASSERT_TRUE(wait_until([&] { return begun > 20; }));
  nodes.kill(1);
  nodes.suspect_other(0);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(0, State::done); }));
  EXPECT_EQ(nodes[0].result()->first_lines, remainders);
  EXPECT_TRUE(nodes[0].flow_report().has_taken_over);
}

/// A folder that the destructor removes.
class CheckpointsOnNodes : public ::testing::Test {
 protected:
  CheckpointsOnNodes() {
    std::string name = ::testing::TempDir() + "/flow-checkpoint-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CheckpointsOnNodes() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> names(const std::string& folder) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator{folder})
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  /// Runs a program on both nodes until it has ended. Returns its lines on each.
  std::array<std::vector<std::string>, 2> run(const FlowProgram& program) {
    TwoNodes nodes{program};
    std::array<std::vector<std::string>, 2> lines;
    for (const std::size_t node : {0U, 1U}) {
      EXPECT_TRUE(wait_until([&] { return nodes.all_are(node, State::done); }));
      if (const auto result = nodes[node].result()) lines[node] = result->first_lines;
    }
    return lines;
  }

  std::string folder_;
  std::atomic<int> calls_ = 0;
};

TEST_F(CheckpointsOnNodes, AreWrittenTogetherAndReadByALaterJob) {
  const FlowProgram program = [this](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    const auto counts = engine
                            .generate(3000,
                                      [this](std::uint64_t i) {
                                        ++calls_;
                                        return std::pair{i % 7, 1};
                                      })
                            .reduce_by_key(std::plus<>{});
    const auto saved = checkpoint(counts, folder_ + "/counts");
    if (!saved) return saved.error();
    const auto all = saved->sort_by([](const auto& pair) { return pair.first; }).collect();
    if (!all) return all.error();
    wire::FlowResult result;
    for (const auto& [remainder, number] : *all)
      result.first_lines.push_back(std::to_string(remainder) + "=" + std::to_string(number));
    return result;
  };
  for (const auto& lines : run(program)) EXPECT_EQ(lines, remainders);
  const int calls = calls_;
  EXPECT_GE(calls, 3000);
  EXPECT_EQ(names(folder_), std::vector<std::string>{"counts"});
  EXPECT_EQ(names(folder_ + "/counts").size(), 7U);
  for (const auto& lines : run(program)) EXPECT_EQ(lines, remainders);
  EXPECT_EQ(calls_, calls);
  // One process has the same lineage, and so reads the same files.
  const auto alone = program(flow::MapReduce::make({.threads = 1, .parts = 6}).value());
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->first_lines, remainders);
  EXPECT_EQ(calls_, calls);
}

TEST_F(CheckpointsOnNodes, OfIterateOutliveANode) {
  constexpr std::uint32_t rounds = 40;
  const FlowProgram program = [this](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    using Numbers = flow::Set<std::pair<std::uint64_t, std::uint64_t>>;
    const Numbers start = engine.generate(200, [](std::uint64_t i) {
      return std::pair{i % 20, i};
    });
    const auto step = [this](const Numbers& set, std::uint32_t round) -> Numbers {
      ++calls_;
      return set
          .map([round](const auto& pair) {
            return std::pair{(pair.first + round) % 20, 3 * pair.second + pair.first};
          })
          .reduce_by_key(std::plus<>{}, 4);
    };
    const auto last = iterate(start, rounds, step, {.folder = folder_ + "/rounds", .every = 5});
    if (!last) return last.error();
    const auto all = last->collect();
    if (!all) return all.error();
    wire::FlowResult result;
    for (const auto& [key, value] : *all)
      result.first_lines.push_back(std::to_string(key) + "=" + std::to_string(value));
    return result;
  };
  const auto alone = program(flow::MapReduce::make({.threads = 1, .parts = 6}).value());
  ASSERT_TRUE(alone) << alone.error().message;
  ASSERT_EQ(alone->first_lines.size(), 20U);
  std::filesystem::remove_all(folder_ + "/rounds");
  calls_ = 0;
  TwoNodes nodes{program};
  // Four members run the program.
  ASSERT_TRUE(wait_until([this] { return calls_ > 4 * 12; }));
  nodes.kill(1);
  nodes.suspect_other(0);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(0, State::done); }))
      << nodes[0].reports().front().why;
  EXPECT_EQ(nodes[0].result()->first_lines, alone->first_lines);
  EXPECT_EQ(names(folder_ + "/rounds"), (std::vector<std::string>{"round-35", "round-40"}));
}

TEST(FlowOnNodes, RefusesActionsInsideFunctions) {
  TwoNodes nodes{[](const flow::MapReduce& engine) -> Result<wire::FlowResult> {
    const auto inner = engine.collection(std::vector<int>{1, 2});
    const auto sums = engine.collection(std::vector<int>{3}).map([inner](int i) {
      const auto count = inner.count();
      if (!count) throw std::runtime_error{count.error().message};
      return i;
    });
    const auto all = sums.collect();
    if (!all) return all.error();
    return wire::FlowResult{};
  }};
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(0, State::failed); }));
  EXPECT_NE(nodes[0].reports().front().why.find("needs the result of another one"),
            std::string::npos)
      << nodes[0].reports().front().why;
}

TEST(FlowOnNodes, RefusesOptionsThatCannotWork) {
  FlowJobOptions options{
      .program = count_remainders, .workers = 300, .engine = {}, .wait_for_nodes = {}};
  EXPECT_EQ(make_flow_job(options, {}).error().message,
            "workers=300 is too many; valid: up to 256");
  options.workers = 1;
  options.engine.threads = 0;
  EXPECT_EQ(make_flow_job(options, {}).error().message,
            "threads: 0 is out of range; valid: 1 to 32");
}

}  // namespace
}  // namespace starling::actor
