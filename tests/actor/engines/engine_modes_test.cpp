// Tests that each update is applied exactly once, in every mode, under every barrier and with 1, 2
// and 7 workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "starling/actor/engines/engine.hpp"

namespace starling::actor {
namespace {

constexpr core::Step steps = 20;

struct Case {
  core::Mode mode;
  const char* barrier;
  std::size_t workers;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return core::print(info.param.mode) + "_" + info.param.barrier + "_" +
         std::to_string(info.param.workers);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::size_t workers : {1U, 2U, 7U}) {
    for (const char* name : {"bsp", "ssp", "asp", "pbsp", "pssp", "half", "phalf", "near", "pnear"})
      all.push_back({core::Mode::central, name, workers});
    for (const core::Mode mode : {core::Mode::hybrid, core::Mode::peer})
      for (const char* name : {"asp", "pbsp", "pssp", "phalf", "pnear"})
        all.push_back({mode, name, workers});
  }
  return all;
}

/// Returns the barrier of a case. A sampled barrier draws 2 workers, or all others if there are
/// fewer. "half" is a user's rule over steps: at least half of the workers seen must have reached
/// the worker's step. "near" is one over paces: no worker seen may be behind that has needed less
/// than a second for its last step.
barrier::Barrier barrier_of(const Case& test_case) {
  const auto half =
      barrier::Predicate::make("half", [](barrier::Step own, std::span<const barrier::Step> seen) {
        const auto caught_up = std::ranges::count_if(seen, [&](auto step) { return step >= own; });
        return 2 * caught_up >= std::ssize(seen);
      });
  const auto near = barrier::Predicate::of_paces(
      "near", [](const barrier::Pace& own, std::span<const barrier::Pace> others) {
        return std::ranges::none_of(others, [&](const barrier::Pace& other) {
          return other.step < own.step && other.duration < std::chrono::seconds{1};
        });
      });
  const std::array predicates{half, near};
  std::string text = test_case.barrier;
  if (text.starts_with('p'))
    text += ":beta=" + std::to_string(std::min<std::size_t>(2, test_case.workers - 1));
  return barrier::parse(text, predicates).value();
}

/// Runs a job in which each worker adds to the key "all" and to its own row of the key "mine", and
/// expects the exact sums.
template <class T, class Engine>
void expect_each_update_once(const Case& test_case) {
  std::atomic<int> wrong_reads{0};
  auto engine = Engine::make(
      {.workers = test_case.workers,
       .mode = test_case.mode,
       .barrier = barrier_of(test_case),
       .steps = steps},
      {{"all", {3}}, Tensor<T>::by_rows("mine", {test_case.workers, 600}), {"quiet", {}, {42}}},
      {.schedule =
           [](auto& context) {
             return std::vector<Selection>{{"mine", std::vector{context.worker()}}, {"all"}};
           },
       .push = [&](auto& context) -> std::vector<Update<T>> {
         const T step = static_cast<T>(context.step());
         // No other worker changes this worker's row, and the owners hold each update of this
         // worker before its next step.
         if (context.row("mine", context.worker())[599] != step) ++wrong_reads;
         const auto fetched = context.fetch({"mine", std::vector{context.worker()}});
         if (!fetched || fetched->front() != step) ++wrong_reads;
         if (context.get("all")[0] < step) ++wrong_reads;
         return {{"all", {1, 2, 3}},
                 {"mine", std::vector<T>(600, 1), std::vector{context.worker()}}};
       }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(outcome.last.updates, steps * test_case.workers);
  const T all = static_cast<T>(steps * test_case.workers);
  EXPECT_EQ(engine->get("all").value(), (std::vector<T>{all, 2 * all, 3 * all}));
  EXPECT_EQ(engine->get("mine").value(),
            std::vector<T>(600 * test_case.workers, static_cast<T>(steps)));
  EXPECT_EQ(engine->get("quiet").value(), std::vector<T>{42});
  EXPECT_EQ(wrong_reads, 0);
}

class Modes : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Modes, testing::ValuesIn(cases()), name_of);

TEST_P(Modes, EveryUpdateCountsOnce) {
  if (GetParam().mode == core::Mode::peer) {
    expect_each_update_once<float, PeerEngine<float>>(GetParam());
    expect_each_update_once<double, PeerEngine<double>>(GetParam());
  } else {
    expect_each_update_once<float, ParameterEngine<float>>(GetParam());
    expect_each_update_once<double, ParameterEngine<double>>(GetParam());
  }
}

/// A user who wants no limit gives the longest time.
TEST(Fetch, MayWaitForAnyTime) {
  EngineOptions options{.workers = 2, .steps = steps};
  options.fetch_timeout = std::chrono::nanoseconds::max();
  auto engine = PeerEngine<double>::make(options, {{"sum"}},
                                         {.push = [](auto& context) -> std::vector<Update<double>> {
                                           if (const auto sum = context.fetch({"sum"}); !sum)
                                             throw std::runtime_error{sum.error().message};
                                           return {{"sum", {1}}};
                                         }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(engine->get("sum").value()[0], 2 * steps);
}

}  // namespace
}  // namespace starling::actor
