/// Tests that the checker finds deliberately broken cores within 1,000 seeds, because a check that
/// never fails shows nothing. The tests in this file break owners, replicas and reads, and let
/// cores throw.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

using core::Envelope;
using core::PeerMessage;

/// Returns the node's part of the model under owners; nullptr under another exchange.
core::Replica* replica_of(core::MemberCore* node) {
  if (node == nullptr) return nullptr;
  auto& training = node->role<core::Training>();
  if (!std::holds_alternative<core::OwnershipExchange>(std::as_const(training).exchange()))
    return nullptr;
  return &training.exchange<core::OwnershipExchange>().replica();
}

/// Owners forget their ledgers, so a push that arrives again is applied again.
class NoLedger : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = payload_as<core::Push>(envelope);
    auto* replica = replica_of(world.node(envelope.to));
    if (push == nullptr || replica == nullptr) return true;
    core::Shard& shard = replica->shard();
    if (!shard.holds(push->range)) return true;
    core::OwnerState state = shard.full_state(push->range);
    for (core::LedgerEntry& entry : state.state.ledger) entry = {};
    shard.put_range(state);
    return true;
  }
};

/// Either a range does not hold each step once, or its replicas differ.
TEST(Sabotage, UpdatesThatAreAppliedTwiceAreFound) {
  EXPECT_TRUE(seeds_until_found<NoLedger>(1000, "range "));
}

/// The primary acknowledges a push 1 ms after its arrival, and applies it 5 ms later.
class HastyPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = payload_as<core::Push>(envelope);
    const auto* replica = replica_of(world.node(envelope.to));
    if (push == nullptr || replica == nullptr || !replica->is_primary(push->range)) return true;
    const Time soon = world.now() + std::chrono::milliseconds{1};
    world.forge_sending(soon, envelope.to, envelope.from,
                        core::Ack{push->range, push->step, push->incarnation, push->owner_epoch});
    world.forge_arrival(soon + std::chrono::milliseconds{5}, envelope.from, envelope.to, *push);
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, AcknowledgementsBeforeTheUpdateIsAppliedAreFound) {
  EXPECT_TRUE(seeds_until_found<HastyPrimary>(1000, "acknowledged"));
}

/// The primary believes that the other owners hold pushes that it has only just forwarded to them.
class TrustingPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = payload_as<core::Push>(envelope);
    auto* node = world.node(envelope.to);
    if (push == nullptr || node == nullptr || node->configuration() == nullptr) return true;
    // The primary forwards the push right after this arrival, with a number below 200.
    const auto& ownership = node->configuration()->ranges[push->range];
    for (const core::RangeOwner& owner : ownership.owners)
      if (owner.id != envelope.to)
        for (std::uint64_t number = 0; number < 200; ++number)
          world.forge_arrival(world.now(), owner.id, envelope.to,
                              core::Held{push->range, ownership.owner_epoch, number});
    return true;
  }
};

TEST(Sabotage, AcknowledgementsBeforeAllReplicasHoldThePushAreFound) {
  EXPECT_TRUE(seeds_until_found<TrustingPrimary>(1000, "acknowledged"));
}

/// In each new configuration that a node receives, the node is the primary of all ranges that it
/// owned before.
class SecondPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* next = payload_as<core::ConfigurationPtr>(envelope);
    if (next == nullptr) return true;
    auto other = std::make_shared<core::Configuration>(**next);
    for (core::Ownership& range : other->ranges) {
      const auto self = std::ranges::find(range.owners, envelope.to, &core::RangeOwner::id);
      if (self != range.owners.end() && self->since < other->epoch)
        std::rotate(range.owners.begin(), self, self + 1);
    }
    envelope.packet.payload =
        std::make_shared<const PeerMessage>(core::ConfigurationPtr{std::move(other)});
    return true;
  }
};

TEST(Sabotage, TwoPrimariesInOneEpochAreFound) {
  EXPECT_TRUE(seeds_until_found<SecondPrimary>(1000, "two configurations"));
}

/// New owners receive the parameters without the optimiser's slots.
class SlotsForgotten : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* install = payload_as<core::Install>(envelope);
    if (install == nullptr) return true;
    auto state = std::make_shared<core::OwnerState>(*install->state);
    state->state.slots = {};
    replace_payload(envelope, core::Install{install->owner_epoch, std::move(state)});
    return true;
  }
};

TEST(Sabotage, RangeStatesWithoutOptimiserSlotsAreFound) {
  EXPECT_TRUE(seeds_until_found<SlotsForgotten>(50, "differ in"));
}

/// Replicas apply each pair of forwarded pushes (numbers 1 and 2, 3 and 4, ...) in the wrong order
/// if the pushes are of different workers, and acknowledge only the second.
class SwappedPushes : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    if (const auto* held = payload_as<core::Held>(envelope); held != nullptr && held->number > 0) {
      const auto pair =
          pairs_.find({envelope.from, held->range, held->owner_epoch, (held->number - 1) / 2});
      if (pair != pairs_.end() && pair->second.pushes[1] && held->number % 2 == 1)
        replace_by_probe(envelope);
      return true;
    }
    const auto* forward = payload_as<core::Forward>(envelope);
    if (forward == nullptr) return true;
    const std::uint64_t pair_number = (forward->number - 1) / 2;
    auto& pair = pairs_[{envelope.to, forward->range, forward->owner_epoch, pair_number}];
    pair.started_at = std::min(pair.started_at, world.now());
    if (!pair.passed) pair.pushes[(forward->number - 1) % 2] = forward->push;
    const auto& [one, other] = pair.pushes;
    if ((one && other) || world.now() > pair.started_at + std::chrono::milliseconds{100})
      pair.passed = true;
    if (!pair.passed) return false;  // the channel sends the message again
    if (!one || !other || one->worker == other->worker) return true;
    core::Forward swapped = *forward;
    swapped.push = pair.pushes[forward->number % 2];
    replace_payload(envelope, swapped);
    return true;
  }

 private:
  struct Pair {
    std::array<std::shared_ptr<const core::Push>, 2> pushes;
    Time started_at = Time::max();
    bool passed = false;
  };
  std::map<std::tuple<core::MemberId, core::RangeId, core::Epoch, std::uint64_t>, Pair> pairs_;
};

TEST(Sabotage, ReplicasThatApplyPushesInAnotherOrderAreFound) {
  EXPECT_TRUE(seeds_until_found<SwappedPushes>(50, "differ in"));
}

/// Replicas receive an update that differs from the primary's in one element.
class AlteredPushes : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* forward = payload_as<core::Forward>(envelope);
    if (forward == nullptr || !forward->push || forward->push->update.empty()) return true;
    auto push = std::make_shared<core::Push>(*forward->push);
    auto values = core::Buffer::copy_of<double>(push->update.as<double>());
    values->as<double>()[3] += 1;
    push->update = {std::move(values), 0, push->update.count, push->update.rows};
    core::Forward altered = *forward;
    altered.push = std::move(push);
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, PushesThatAreAlteredOnTheirWayToReplicasAreFound) {
  EXPECT_TRUE(seeds_until_found<AlteredPushes>(20, "differ in"));
}

/// Owners that are not primary weigh pushes by another number of workers than the primary.
class OtherWeights : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* forward = payload_as<core::Forward>(envelope);
    if (forward == nullptr || forward->push == nullptr) return true;
    core::Forward altered = *forward;
    altered.workers = forward->workers % 2 + 1;
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, CopiesThatWeighUpdatesInAnotherWayAreFound) {
  EXPECT_TRUE(seeds_until_found<OtherWeights>(20, "differ in"));
}

/// Every read is answered with the value that the worker first read of the range.
class StaleReader : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* value = payload_as<core::Value>(envelope);
    if (value == nullptr) return true;
    const auto first = first_values_.try_emplace({envelope.to, value->range}, value->value).first;
    replace_payload(envelope, core::Value{value->range, value->after_step, first->second});
    return true;
  }

 private:
  std::map<std::pair<core::MemberId, core::RangeId>, core::Slice> first_values_;
};

TEST(Sabotage, StaleReadsAreFound) {
  EXPECT_TRUE(seeds_until_found<StaleReader>(20, " reads range "));
}

/// In each value that is read, the sum of the numbers of worker 0's steps is too large by 1.
class TornReader : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* value = payload_as<core::Value>(envelope);
    if (value == nullptr || value->value.rows) return true;
    core::Value torn = *value;
    auto elements = core::Buffer::copy_of(value->value.as<double>());
    elements->as<double>()[1] += 1;
    torn.value = {elements, 0, static_cast<std::uint32_t>(elements->as<double>().size()), nullptr};
    replace_payload(envelope, std::move(torn));
    return true;
  }
};

TEST(Sabotage, ReadsThatDoNotHoldEachStepOnceAreFound) {
  EXPECT_TRUE(seeds_until_found<TornReader>(20, "without each step of worker"));
}

/// Owners count one sample too many in each push.
class MiscountedSamples : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* push = payload_as<core::Push>(envelope);
    if (push == nullptr || push->is_join) return true;
    core::Push altered = *push;
    ++altered.samples;
    ++altered.samples_total;
    replace_payload(envelope, std::move(altered));
    return true;
  }
};

TEST(Sabotage, OwnersThatMiscountSamplesAreFound) {
  EXPECT_TRUE(seeds_until_found<MiscountedSamples>(20, "samples, and holds updates of"));
}

/// Primaries never receive the Held messages of other owners.
class NoHeld : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    if (payload_as<core::Held>(envelope) != nullptr) replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, JobsThatNeverFinishAreFound) {
  EXPECT_TRUE(seeds_until_found<NoHeld>(20, "stuck: "));
}

/// Replicas, not the primary, acknowledge the pushes that are forwarded to them.
class AcknowledgingReplica : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* forward = payload_as<core::Forward>(envelope);
    if (forward == nullptr || !forward->push) return true;
    const core::Push& push = *forward->push;
    world.forge_sending(world.now(), envelope.to, push.worker,
                        core::Ack{push.range, push.step, push.incarnation, push.owner_epoch});
    return true;
  }
};

TEST(Sabotage, ReplicasThatAcknowledgeAreFound) {
  EXPECT_TRUE(seeds_until_found<AcknowledgingReplica>(20, "is not its primary"));
}

/// The numbers of forwarded pushes skip a value, so that the core reports a broken invariant.
class SkippedNumbers : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* forward = payload_as<core::Forward>(envelope);
    if (forward == nullptr) return true;
    core::Forward other = *forward;
    other.number += other.number > 3 ? 1 : 0;
    replace_payload(envelope, other);
    return true;
  }
};

TEST(Sabotage, BrokenInvariantsOfCoresAreReportedAndShrunk) {
  EXPECT_TRUE(seeds_until_found<SkippedNumbers>(
      20, "broken invariant 'forward.number == owned.number + 1'"));
  SkippedNumbers saboteur;
  Scenario scenario = draw_scenario(0);
  for (std::uint64_t seed = 0;
       scenario.faults.empty() || scenario.exchange != core::OwnershipExchange::name; ++seed)
    scenario = draw_scenario(seed);
  const std::string violation = run_chaos(scenario, &saboteur).violation;
  const Scenario shrunk = shrink(scenario, 100, &saboteur);
  EXPECT_TRUE(shrunk.faults.empty());
  EXPECT_TRUE(is_alike(run_chaos(shrunk, &saboteur).violation, violation));
}

class ThrowingCore : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope&) override {
    if (world.now() > std::chrono::milliseconds{10}) throw std::runtime_error{"out of luck"};
    return true;
  }
};

TEST(Sabotage, ExceptionsAreReportedWithTheirScenario) {
  EXPECT_EQ(seeds_until_found<ThrowingCore>(1, "out of luck"), 1U);
}

/// Throws one error after node 1 has crashed, and another if node 0 receives a message after 60 ms.
class TwoErrors : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    if (world.node(1) == nullptr) throw std::runtime_error{"node 1 is missing"};
    if (world.now() > std::chrono::milliseconds{60} && envelope.to == 0)
      throw std::runtime_error{"it is late"};
    return true;
  }
};

TEST(Sabotage, ShrinkingKeepsTheKindOfViolation) {
  Scenario scenario;
  scenario.exceeds_fault_budget = true;
  scenario.barrier = barrier::sampled(barrier::Ssp{2}, 2);
  scenario.faults = {{.kind = Fault::Kind::crash, .node = 1, .at = std::chrono::milliseconds{20}}};
  TwoErrors saboteur;
  ASSERT_EQ(run_chaos(scenario, &saboteur).violation, "node 1 is missing");
  // Without the crash, the job fails with the other error.
  EXPECT_EQ(shrink(scenario, 100, &saboteur).faults.size(), 1U);
}

TEST(Sabotage, ViolationsAreAlikeIfOnlyTheirNumbersDiffer) {
  EXPECT_TRUE(is_alike("node 1 has lost step 3", "node 12 has lost step 4"));
  EXPECT_TRUE(is_alike("stuck: member 3 is dead", "stuck: node 1 is not a member"));
  EXPECT_FALSE(is_alike("stuck: node 1", "node 1 has ended the job: stuck"));
}

}  // namespace
}  // namespace starling::sim
