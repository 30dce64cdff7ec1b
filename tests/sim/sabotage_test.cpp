/// Deliberately broken cores, broken from outside: each is found within 1,000 seeds. A check that
/// never fails shows nothing.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "starling/engine/sim/chaos.hpp"

namespace starling::sim {
namespace {

using core::Envelope;
using core::Letter;

/// The letter in a packet, as a T; nullptr where it holds another or none.
template <class T>
const T* letter(const Envelope& envelope) {
  return envelope.packet.payload ? std::get_if<T>(&**envelope.packet.payload) : nullptr;
}

/// A letter that says nothing, in place of another.
void blank(Envelope& envelope) {
  envelope.packet.payload = std::make_shared<const Letter>(core::Greeting{});
}

/// Runs seeds until one fails; how many it took, or nothing.
template <class Saboteur>
std::optional<std::uint64_t> found_after(std::uint64_t seeds, std::string_view expected) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Saboteur saboteur;
    const auto report = run_chaos(draw_scenario(seed), &saboteur);
    if (report.violation.empty()) continue;
    EXPECT_NE(report.violation.find(expected), std::string::npos) << report.violation;
    return seed + 1;
  }
  return std::nullopt;
}

/// Owners forget what they have taken: a push that comes again is applied again.
class NoLedger : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = letter<core::Push>(envelope);
    auto* node = world.node(envelope.to);
    if (push == nullptr || node == nullptr || node->replica() == nullptr) return true;
    auto& shard = node->replica()->shard();
    if (!shard.holds(push->range)) return true;
    core::RangeState state = shard.hand_over(push->range);
    for (core::LedgerEntry& entry : state.ledger) entry = {};
    shard.take_in(state);
    return true;
  }
};

TEST(Sabotage, UpdatesThatAreTakenTwiceAreFound) {
  EXPECT_TRUE(found_after<NoLedger>(1000, "once"));
}

/// The primary says that it holds a push when it comes, and takes it a little later.
class HastyPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = letter<core::Push>(envelope);
    auto* node = world.node(envelope.to);
    if (push == nullptr || node == nullptr || node->replica() == nullptr) return true;
    if (!node->replica()->is_primary(push->range)) return true;
    const Time soon = world.now() + std::chrono::milliseconds{1};
    world.whisper(soon, envelope.to, envelope.from,
                  core::Ack{push->range, push->step, push->incarnation, push->view});
    world.whisper(soon + std::chrono::milliseconds{5}, envelope.from, envelope.to, *push);
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, AcknowledgementsBeforeTheUpdateIsAppliedAreFound) {
  EXPECT_TRUE(found_after<HastyPrimary>(1000, "acknowledged"));
}

/// The primary believes that its copies hold what it has only just sent to them.
class TrustingPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* push = letter<core::Push>(envelope);
    auto* node = world.node(envelope.to);
    if (push == nullptr || node == nullptr || node->configuration() == nullptr) return true;
    // Right after this arrival the primary will have forwarded it, under some number up to here.
    const auto& ownership = node->configuration()->ranges[push->range];
    for (const core::RangeOwner& owner : ownership.owners)
      if (owner.id != envelope.to)
        for (std::uint64_t number = 0; number < 200; ++number)
          world.whisper(world.now(), owner.id, envelope.to,
                        core::Held{push->range, ownership.view, number});
    return true;
  }
};

TEST(Sabotage, AcknowledgementsBeforeAllCopiesHoldItAreFound) {
  EXPECT_TRUE(found_after<TrustingPrimary>(1000, "acknowledged"));
}

/// Whoever is asked for its step and cannot answer within a while counts as far ahead.
class PatientlyIgnored : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    auto* node = world.node(envelope.to);
    if (node == nullptr || node->configuration() == nullptr) return true;
    const auto* query = letter<core::StepQuery>(envelope);
    if (query == nullptr) return true;
    // The asker hears nothing else for it: it takes the silence for consent.
    world.whisper(world.now() + std::chrono::milliseconds{20}, envelope.to, envelope.from,
                  core::StepAnswer{envelope.to, query->draw, barrier::finished});
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, BarriersThatIgnoreSilenceAreFound) {
  EXPECT_TRUE(found_after<PatientlyIgnored>(1000, "passed the barrier"));
}

/// One node takes itself for the primary of all it owns, in the epoch of the others.
class SecondPrimary : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* next = letter<core::ConfigurationPtr>(envelope);
    if (next == nullptr) return true;
    auto other = std::make_shared<core::Configuration>(**next);
    for (core::Ownership& range : other->ranges) {
      const auto self = std::ranges::find(range.owners, envelope.to, &core::RangeOwner::id);
      if (self != range.owners.end() && self->since < other->epoch)
        std::rotate(range.owners.begin(), self, self + 1);
    }
    envelope.packet.payload =
        std::make_shared<const Letter>(core::ConfigurationPtr{std::move(other)});
    return true;
  }
};

TEST(Sabotage, TwoPrimariesInOneEpochAreFound) {
  EXPECT_TRUE(found_after<SecondPrimary>(1000, "two configurations"));
}

}  // namespace
}  // namespace starling::sim
