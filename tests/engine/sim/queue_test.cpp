#include "starling/engine/sim/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "starling/base/random.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

TEST(Queue, PopsEventsByTimeThenByInsertion) {
  Queue<char> queue;
  queue.push(2ms, 'c');
  queue.push(1ms, 'a');
  queue.push(2ms, 'd');
  queue.push(1ms, 'b');
  std::string order;
  while (!queue.empty()) order += queue.pop();
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(queue.now(), 2ms);
}

TEST(Queue, PopsAnEventOfThePastAtThePresentTime) {
  Queue<int> queue;
  queue.push(5ms, 1);
  queue.pop();
  queue.push(3ms, 2);
  EXPECT_EQ(queue.next_at(), 5ms);
  queue.pop();
  queue.advance(9ms);
  EXPECT_EQ(queue.now(), 9ms);
}

/// Compares the queue with an ordered map whose keys are time and order of insertion.
TEST(Queue, AgreesWithAMap) {
  Queue<std::uint64_t> queue;
  std::map<std::pair<Time, std::uint64_t>, std::uint64_t> map;
  Random random{1};
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    if (!map.empty() && random.below(2) == 0) {
      ASSERT_EQ(queue.pop(), map.begin()->second);
      ASSERT_EQ(queue.now(), map.begin()->first.first);
      map.erase(map.begin());
    }
    const Time at = queue.now() + Time{random.below(50)};
    queue.push(at, std::uint64_t{i});
    map.emplace(std::pair{at, i}, i);
  }
  EXPECT_EQ(queue.size(), map.size());
}

}  // namespace
}  // namespace starling::sim
