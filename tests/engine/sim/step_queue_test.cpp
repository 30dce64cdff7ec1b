/// Compares StepQueue with an ordered set.
#include "starling/engine/sim/steps/step_queue.hpp"
#include "starling/base/to_duration.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "starling/base/distributions/distribution.hpp"

namespace starling::sim {
namespace {

using core::MemberId;
using core::Time;

struct QueueCase {
  std::size_t workers;
  const char* law;
};

class StepTimeLaws : public testing::TestWithParam<QueueCase> {};

/// Each worker that is popped is pushed again, one step time later, as in a simulation.
TEST_P(StepTimeLaws, PopInTheOrderOfTimeAndWorker) {
  const auto [workers, text] = GetParam();
  const auto law = parse_distribution(text).value();
  StepQueue queue{workers, to_duration(law.mean() * 1e9)};
  std::set<std::pair<Time, MemberId>> oracle;
  Random random{1};
  const auto push = [&](Time at, MemberId worker) {
    if (oracle.emplace(at, worker).second) queue.push(at, worker);
  };
  for (MemberId worker = 0; worker < workers; ++worker) push(law.draw(random), worker);
  for (int pushes = 0; pushes < 20'000; ++pushes) {
    const auto event = queue.pop();
    ASSERT_TRUE(event);
    ASSERT_EQ(std::pair(event->at, event->worker), *oracle.begin());
    oracle.erase(oracle.begin());
    push(event->at + law.draw(random), event->worker);
  }
  while (const auto event = queue.pop()) {
    ASSERT_EQ(std::pair(event->at, event->worker), *oracle.begin());
    oracle.erase(oracle.begin());
  }
  EXPECT_TRUE(oracle.empty());
}

INSTANTIATE_TEST_SUITE_P(All, StepTimeLaws,
                         testing::Values(QueueCase{1, "exp:100ms"}, QueueCase{3, "exp:1ns"},
                                         QueueCase{7, "const:1h"}, QueueCase{3000, "exp:100ms"},
                                         QueueCase{3000, "const:100ms"},
                                         QueueCase{300, "pareto:mean=1s,alpha=1.05"},
                                         QueueCase{2, "lognormal:mean=1h,sigma=3"}));

TEST(StepQueue, IsEmptyAtFirstAndAgain) {
  StepQueue queue{1, Time{1000}};
  EXPECT_FALSE(queue.pop());
  queue.push(Time{5}, 0);
  EXPECT_TRUE(queue.pop());
  EXPECT_FALSE(queue.pop());
  queue.push(Time{5}, 0);
  EXPECT_TRUE(queue.pop()) << "it has the same time as the last event";
}

/// Popping an event that is a year away must not visit all empty buckets before it, or this test
/// takes too long.
TEST(StepQueue, SkipsTimeWithoutEvents) {
  StepQueue queue{1'000'000, std::chrono::milliseconds{100}};
  const Time year = std::chrono::hours{24 * 365};
  queue.push(year, 1);
  EXPECT_EQ(queue.pop()->at, year);
}

}  // namespace
}  // namespace starling::sim
