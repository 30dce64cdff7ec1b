// Tests the repeated lookup of the hosts of `--join`.
#include "starling/tools/cluster/keys/seed_lookup.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/waiting.hpp"

namespace starling::program {
namespace {

using Addresses = std::vector<std::string>;

/// The lookup's thread may outlive a test, so it shares this number.
std::shared_ptr<std::atomic<int>> make_round() { return std::make_shared<std::atomic<int>>(0); }

/// In round 0, host b cannot be looked up; in round 1, both can; in round 2, b has another address;
/// in round 3, a cannot be looked up any more.
Result<Addresses> addresses_in(int round, const std::string& host) {
  if (host == (round == 0 ? "b" : "a") && (round == 0 || round == 3)) return Error{"unknown"};
  return Addresses{host + (host == "b" && round > 1 ? "2" : "1")};
}

TEST(SeedLookup, ReturnsTheAddressesWhenTheyChange) {
  const auto round = make_round();
  SeedLookup lookup{{{"join", "a", "--join"}, {"join", "b", "--join"}},
                    [round](const Setting& join) { return addresses_in(*round, join.text); },
                    std::chrono::milliseconds{1}};
  Addresses last;
  const auto poll_for = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      if (auto changed = lookup.poll()) last = *std::move(changed);
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  };
  poll_for(std::chrono::milliseconds{50});
  EXPECT_EQ(last, Addresses{}) << "b was never found";
  for (const auto& [number, expected] : {std::pair{1, Addresses{"a1", "b1"}}, {2, {"a1", "b2"}}}) {
    *round = number;
    EXPECT_TRUE(wait_until([&] {
      poll_for(std::chrono::milliseconds{5});
      return last == expected;
    }));
  }
  *round = 3;
  poll_for(std::chrono::milliseconds{50});
  EXPECT_EQ(last, (Addresses{"a1", "b2"}));
}

}  // namespace
}  // namespace starling::program
