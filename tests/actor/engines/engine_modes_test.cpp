// In every mode, under every barrier and with any number of workers, each update is applied exactly
// once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

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
    for (const char* name : {"bsp", "ssp", "asp", "pbsp", "pssp", "half", "phalf"})
      all.push_back({core::Mode::central, name, workers});
    for (const core::Mode mode : {core::Mode::hybrid, core::Mode::peer})
      for (const char* name : {"asp", "pbsp", "pssp", "phalf"})
        all.push_back({mode, name, workers});
  }
  return all;
}

/// Makes the case's barrier. A sampled one draws 2 workers, or all others if there are fewer.
/// "half" is a rule of the user's: at least half of the workers seen have caught up.
barrier::Barrier barrier_of(const Case& one) {
  const auto half =
      barrier::Predicate::make("half", [](barrier::Step own, std::span<const barrier::Step> seen) {
        const auto fine = std::ranges::count_if(seen, [&](auto step) { return step >= own; });
        return 2 * fine >= std::ssize(seen);
      });
  std::string text = one.barrier;
  if (text == "pbsp" || text == "pssp" || text == "phalf")
    text += ":beta=" + std::to_string(std::min<std::size_t>(2, one.workers - 1));
  return barrier::parse(text, std::span{&half, 1}).value();
}

template <class T, class Engine>
void count(const Case& one) {
  std::atomic<int> wrong{0};
  auto engine = Engine::make(
      {.workers = one.workers, .mode = one.mode, .barrier = barrier_of(one), .steps = steps},
      {{"all", {3}}, Tensor<T>::by_rows("mine", {one.workers, 600}), {"quiet", {}, {42}}},
      {.schedule =
           [](auto& turn) {
             return std::vector<Selection>{{"mine", std::vector{turn.worker()}}, {"all"}};
           },
       .push = [&](auto& turn) -> std::vector<Update<T>> {
         const T step = static_cast<T>(turn.step());
         // No other worker writes my row, and my own updates are held before my next step.
         if (turn.row("mine", turn.worker())[599] != step) ++wrong;
         const auto fetched = turn.fetch({"mine", std::vector{turn.worker()}});
         if (!fetched || fetched->front() != step) ++wrong;
         if (turn.get("all")[0] < step) ++wrong;
         return {{"all", {1, 2, 3}}, {"mine", std::vector<T>(600, 1), std::vector{turn.worker()}}};
       }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(outcome.last.updates, steps * one.workers);
  const T all = static_cast<T>(steps * one.workers);
  EXPECT_EQ(engine->get("all").value(), (std::vector<T>{all, 2 * all, 3 * all}));
  EXPECT_EQ(engine->get("mine").value(), std::vector<T>(600 * one.workers, static_cast<T>(steps)));
  EXPECT_EQ(engine->get("quiet").value(), std::vector<T>{42});
  EXPECT_EQ(wrong, 0);
}

class Modes : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Modes, testing::ValuesIn(cases()), name_of);

TEST_P(Modes, EveryUpdateCountsOnce) {
  if (GetParam().mode == core::Mode::peer) {
    count<float, PeerEngine<float>>(GetParam());
    count<double, PeerEngine<double>>(GetParam());
  } else {
    count<float, ParameterEngine<float>>(GetParam());
    count<double, ParameterEngine<double>>(GetParam());
  }
}

}  // namespace
}  // namespace starling::actor
