/// Tests that the checker finds broken cores of exchanges within 1,000 seeds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

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

/// A worker moves toward other values than its leader has sent.
class LeaderChanged : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* reply = payload_as<core::LeaderReply>(envelope);
    if (reply == nullptr || reply->values.empty()) return true;
    auto values = core::Buffer::copy_of(reply->values.as<double>());
    for (double& value : values->as<double>()) value *= 4;
    replace_payload(
        envelope,
        core::LeaderReply{
            reply->range, reply->step, {std::move(values), 0, reply->values.count, nullptr}});
    return true;
  }
};

TEST(Sabotage, MovesBeyondTheLeaderAreFound) {
  EXPECT_TRUE(seeds_until_found<LeaderChanged>(1000, "updates of worker"));
}

/// A worker says that it knows how far another one has got, and forgets it.
class LossReportDropped : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    const auto* report = payload_as<core::LossReport>(envelope);
    if (report == nullptr) return true;
    world.forge_sending(world.now() + std::chrono::milliseconds{1}, envelope.to, envelope.from,
                        core::LossReceived{report->step});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, StepsOfTheDeadThatNobodyKnowsAreFound) {
  EXPECT_TRUE(seeds_until_found<LossReportDropped>(1000, "was acknowledged"));
}

/// A worker adds up other numbers than another one has sent.
class SumChanged : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* piece = payload_as<core::SumPiece>(envelope);
    if (piece == nullptr || piece->values.empty()) return true;
    core::SumPiece changed = *piece;
    auto values = core::Buffer::copy_of(piece->values.as<double>());
    values->as<double>()[0] += 1;
    changed.values = {std::move(values), 0, piece->values.count, nullptr};
    replace_payload(envelope, std::move(changed));
    return true;
  }
};

TEST(Sabotage, WrongSumsAreFound) { EXPECT_TRUE(seeds_until_found<SumChanged>(1000, "once")); }

TEST(Sabotage, WrongSumsThatOverlapWithStepsAreFound) {
  EXPECT_TRUE(seeds_until_found<SumChanged>(1000, "once|own", 0, ",overlap"));
}

TEST(Sabotage, WrongSumsOfBucketsAreFound) {
  EXPECT_TRUE(seeds_until_found<SumChanged>(1000, "once", 0, ",buckets="));
}

/// A worker sends the values of a former sum again, as if its update had not been ready when the
/// sum began.
class FormerValuesSent : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* piece = payload_as<core::SumPiece>(envelope);
    if (piece == nullptr || piece->move_round > 0 || piece->values.empty()) return true;
    core::SumPiece changed = *piece;
    auto& former = sent_[{envelope.from, envelope.to, piece->chunk, piece->values.count}];
    if (former.sum != piece->sum) former = {piece->sum, piece->values, former.values};
    if (!former.values_before.empty()) changed.values = former.values_before;
    replace_payload(envelope, std::move(changed));
    return true;
  }

 private:
  struct Former {
    collective::CollectiveId sum = 0;
    core::Slice values;
    /// The values of the sum before.
    core::Slice values_before;
  };
  std::map<std::tuple<core::MemberId, core::MemberId, collective::ChunkId, std::size_t>, Former>
      sent_;
};

TEST(Sabotage, SumsOfFormerUpdatesAreFound) {
  for (const char* exchange : {",overlap", ",buckets="})
    EXPECT_TRUE(
        seeds_until_found<FormerValuesSent>(1000, "once|own|after round|without step", 0, exchange))
        << exchange;
}

/// The same in messages that copy a sum which another worker has: then copies of a round differ.
class SumOfOneChanged : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* piece = payload_as<core::SumPiece>(envelope);
    if (piece == nullptr || piece->move_round == 0 || piece->values.empty()) return true;
    core::SumPiece changed = *piece;
    auto values = core::Buffer::copy_of(piece->values.as<double>());
    for (double& value : values->as<double>())
      if (value > 1000) value += 1;  // only numbers of updates, of which the sums are hashed
    changed.values = {std::move(values), 0, piece->values.count, nullptr};
    replace_payload(envelope, std::move(changed));
    return true;
  }
};

TEST(Sabotage, CopiesThatDifferAfterARoundAreFound) {
  EXPECT_TRUE(seeds_until_found<SumOfOneChanged>(1000, "after round"));
}

/// A worker says that it has not completed the round that it has completed last: if others lack it,
/// they sum it again without the dead, and the copies differ or lack steps of the dead, or no one
/// answers those that ask for the round before.
class RoundWithheld : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* report = payload_as<core::RoundReport>(envelope);
    if (report != nullptr && report->round.value_or(0) > 0)
      replace_payload(envelope, core::RoundReport{report->epoch, *report->round - 1});
    return true;
  }
};

TEST(Sabotage, RoundsThatOthersDoNotGetAreFound) {
  EXPECT_TRUE(seeds_until_found<RoundWithheld>(1000, "after round|without step|stuck"));
}

/// A worker gets another state of the optimizer than the one that it asked for.
class StateChanged : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* reply = payload_as<core::CatchUpReply>(envelope);
    if (reply == nullptr || !reply->copy || reply->copy->state.slots.empty()) return true;
    auto copy = std::make_shared<core::ModelCopy>(*reply->copy);
    const std::size_t count = copy->state.slots.count;
    copy->state.slots = {core::Buffer::zeros(count, sizeof(double)), 0, count, nullptr};
    replace_payload(envelope, core::CatchUpReply{reply->epoch, reply->range, std::move(copy)});
    return true;
  }
};

TEST(Sabotage, WrongStatesOfTheOptimizerAreFound) {
  EXPECT_TRUE(seeds_until_found<StateChanged>(1000, "once|without step|state|after round"));
}

/// A worker says that it has no state of the optimizer, so no one asks it for any.
class StateNotReported : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* report = payload_as<core::RoundReport>(envelope);
    if (report != nullptr && !report->state.empty())
      replace_payload(envelope, core::RoundReport{report->epoch, report->round});
    return true;
  }
};

TEST(Sabotage, StatesOfTheOptimizerThatGetLostAreFound) {
  EXPECT_TRUE(seeds_until_found<StateNotReported>(1000, "the state of the optimizer"));
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
