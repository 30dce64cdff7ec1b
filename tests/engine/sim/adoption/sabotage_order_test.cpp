/// Tests that the checker finds members that adopt configurations in another order, and workers
/// that take a Proceed that is out of date.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/engine/sim/adoption/any_order.hpp"
#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

/// Changes nothing.
class Nothing : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope&) override { return true; }
};

/// Expects that the checker finds members that adopt in this order, in 100 seeds from `first` on,
/// by a violation with the text `expected`, and that members that adopt in the right order pass the
/// same seeds.
void expect_found(std::string_view order, std::string_view expected, std::uint64_t first = 0) {
  std::optional<std::uint64_t> found;
  {
    const core::AdoptionOrder present{order};
    found = seeds_until_found<Nothing>(100, expected, first);
  }
  ASSERT_TRUE(found) << order;
  EXPECT_FALSE(seeds_until_found<Nothing>(*found, "", first)) << core::adoption_order;
}

// Each letter of an order is a part: E exchange, C coordinator, H hold, W worker, D report of what
// was taken for the dealer, S status for a new coordinator.

TEST(Sabotage, ReportsBeforeTheWorkerIsHeldAreFound) {
  expect_found("ECDWHS", "was taken twice", 100);
}

TEST(Sabotage, WorkersThatAreNeverHeldAreFound) { expect_found("ECWDS", "was taken twice"); }

TEST(Sabotage, StatusesBeforeTheWorkerBeginsAreFound) {
  expect_found("ECHSWD", "says to the coordinator that it does not work");
}

/// Few scenarios show this, so it has one of its own, with other losses and times in each run.
TEST(Sabotage, ExchangesThatAdoptAfterTheOthersAreFound) {
  Scenario scenario = parse_scenario(R"(seed 0
mode peer
exchange allreduce:halving,overlap
cache no
barrier bsp
recheck interval:auto
workers 5
servers 0
ranges 4
copies 2
steps 13
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 4
beyond no
fault join:at=8901us,node=7
fault pair-partition:at=14453us,node=1,other=4,ways=1,lasts=765251us
fault suspect:at=19438us,node=3,lasts=827250us
fault crash:at=62830us,node=4,lasts=74452us,after=4
fault join:at=107510us,node=6
fault suspect:at=232150us,node=1,lasts=519285us
fault join:at=236004us,node=5
faults 7
)")
                          .value();
  const auto run = [&](std::uint64_t seed) {
    scenario.seed = seed;
    return run_chaos(scenario).violation;
  };
  std::string violation;
  std::uint64_t runs = 0;
  while (violation.empty() && runs < 300) {
    const core::AdoptionOrder present{"CHWDSE"};
    violation = run(runs++);
  }
  ASSERT_NE(violation.find("was taken twice"), std::string::npos) << violation;
  for (std::uint64_t seed = 0; seed < runs; ++seed)
    ASSERT_EQ(run(seed), "") << core::adoption_order << ", seed " << seed;
}

// --- Proceed ------------------------------------------------------------------------------------

/// Delays each first Proceed for a step. When a new coordinator is in charge and the worker still
/// waits, the worker takes the Proceed of the former coordinator, if this sabotage is `accepted`.
template <bool accepted>
class ProceedOfFormerCoordinator : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    auto* node = world.node(envelope.to);
    if (node == nullptr || node->configuration() == nullptr) return true;
    if (const auto* proceed = payload_as<core::Proceed>(envelope)) {
      Late& late = late_[envelope.to];
      const bool is_first = late.incarnation != node->self().incarnation ||
                            late.coordinator != envelope.from || late.proceed.step < proceed->step;
      if (is_first) late = {node->self().incarnation, envelope.from, *proceed};
      return !is_first;  // the channel sends it again
    }
    const auto* next = payload_as<core::ConfigurationPtr>(envelope);
    const auto late = late_.find(envelope.to);
    if (next == nullptr || late == late_.end() || !(*next)->coordinator) return true;
    const core::Worker* worker = node->role<core::Training>().worker();
    const bool takes_effect = worker != nullptr && worker->is_waiting() &&
                              worker->step() == late->second.proceed.step &&
                              node->self().incarnation == late->second.incarnation;
    if (accepted && takes_effect && (*next)->epoch > node->configuration()->epoch &&
        (*next)->coordinator != late->second.coordinator)
      world.forge_arrival(world.now(), *(*next)->coordinator, envelope.to, late->second.proceed);
    return true;
  }

 private:
  struct Late {
    core::Incarnation incarnation = 0;
    core::MemberId coordinator = 0;
    core::Proceed proceed = {.step = 0};
  };
  std::map<core::MemberId, Late> late_;
};

/// A worker takes a Proceed of an earlier step for one of its present step, when the Proceed has
/// come in an earlier epoch.
template <bool accepted>
class ProceedOfFormerEpoch : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    auto* node = world.node(envelope.to);
    if (node == nullptr || node->configuration() == nullptr) return true;
    if (payload_as<core::Proceed>(envelope) != nullptr)
      came_in_[envelope.to] = {envelope.from, node->configuration()->epoch};
    const auto former = came_in_.find(envelope.to);
    const core::Worker* worker = node->role<core::Training>().worker();
    if (former == came_in_.end() || worker == nullptr || !worker->is_waiting()) return true;
    if (node->configuration()->epoch > former->second.second &&
        node->configuration()->coordinator == former->second.first) {
      if (accepted)
        world.forge_arrival(world.now(), former->second.first, envelope.to,
                            core::Proceed{worker->step()});
      came_in_.erase(former);
    }
    return true;
  }

 private:
  /// By worker: who sent its last Proceed, and the epoch in which it came.
  std::map<core::MemberId, std::pair<core::MemberId, core::Epoch>> came_in_;
};

/// Expects that the checker finds the sabotage, and nothing in the same seeds without it.
template <template <bool> class Saboteur>
void expect_proceed_found() {
  const auto found =
      seeds_until_found<Saboteur<true>>(1000, "goes on without the coordinator's permission");
  ASSERT_TRUE(found);
  EXPECT_FALSE(seeds_until_found<Saboteur<false>>(*found, ""));
}

TEST(Sabotage, WorkersThatObeyAFormerCoordinatorAreFound) {
  expect_proceed_found<ProceedOfFormerCoordinator>();
}

TEST(Sabotage, WorkersThatObeyAProceedOfAFormerEpochAreFound) {
  expect_proceed_found<ProceedOfFormerEpoch>();
}

}  // namespace
}  // namespace starling::sim
