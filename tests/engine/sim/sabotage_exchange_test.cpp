/// Tests that the checker finds broken cores of exchanges within 1,000 seeds.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

/// A worker says that its copy contains an update, and drops it.
class ShareDropped : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    const auto* share = payload_as<core::Share>(envelope);
    if (share == nullptr || share->worker.id != envelope.from) return true;
    world.forge_sending(world.now() + std::chrono::milliseconds{1}, envelope.to, envelope.from,
                        core::ShareApplied{share->worker, share->range, share->step});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, CopiesWithoutAnAcknowledgedUpdateAreFound) {
  EXPECT_TRUE(seeds_until_found<ShareDropped>(1000, "acknowledged"));
}

/// Nobody passes on the last update of a dead worker.
class NotPassedOn : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* share = payload_as<core::Share>(envelope);
    if (share != nullptr && share->worker.id != envelope.from) replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, LastUpdatesOfDeadWorkersThatSomeCopiesLackAreFound) {
  EXPECT_TRUE(seeds_until_found<NotPassedOn>(1000, "is behind"));
}

/// A worker that joins gets a copy that does not say which updates it contains.
class CopyWithoutProgress : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* reply = payload_as<core::CopyReply>(envelope);
    if (reply == nullptr || !reply->copy) return true;
    auto copy = std::make_shared<core::RangeCopy>(*reply->copy);
    copy->progress.clear();
    replace_payload(envelope, core::CopyReply{reply->range, std::move(copy)});
    return true;
  }
};

TEST(Sabotage, UpdatesThatAJoinersCopyContainsTwiceAreFound) {
  EXPECT_TRUE(seeds_until_found<CopyWithoutProgress>(1000, "once"));
}

/// A worker says that it has taken what another one has sent, and drops it.
class PushSumDropped : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    const auto* sent = payload_as<core::PushSum>(envelope);
    if (sent == nullptr) return true;
    world.forge_sending(world.now() + std::chrono::milliseconds{1}, envelope.to, envelope.from,
                        core::GossipReceived{sent->step});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, PushSumWeightThatIsLostIsFound) {
  EXPECT_TRUE(seeds_until_found<PushSumDropped>(1000, "the push-sum weights of range"));
}

/// A worker takes a little more weight than another one has sent.
class PushSumIncreased : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    if (const auto* sent = payload_as<core::PushSum>(envelope))
      replace_payload(envelope,
                      core::PushSum{sent->range, sent->step, 1.01 * sent->weight, sent->value});
    return true;
  }
};

TEST(Sabotage, PushSumWeightThatComesFromNowhereIsFound) {
  EXPECT_TRUE(seeds_until_found<PushSumIncreased>(1000, "the push-sum weights of range"));
}

/// The coordinator tells workers that all others have reached their step, so that they keep what
/// they have read for too long.
class OverstatedFloor : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* proceed = payload_as<core::Proceed>(envelope);
    if (proceed != nullptr)
      replace_payload(envelope, core::Proceed{proceed->step, proceed->until, proceed->step});
    return true;
  }
};

TEST(Sabotage, CachesThatKeepValuesForTooLongAreFound) {
  EXPECT_TRUE(seeds_until_found<OverstatedFloor>(1000, "without step"));
}

}  // namespace
}  // namespace starling::sim
