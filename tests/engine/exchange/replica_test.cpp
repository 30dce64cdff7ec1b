/// Tests the owners of one range, message by message: when they acknowledge a push, and which state
/// new owners receive.
#include "starling/engine/exchange/ownership/replica.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace starling::core {
namespace {

/// Members 0 to 7 may own the only range; members 8 and 9 are workers.
class ReplicaTest : public testing::Test {
 protected:
  struct SentMessage {
    MemberId from;
    MemberId to;
    AnyOf<OwnershipContext::Messages> message;
  };

  ReplicaTest() {
    Layout layout;
    layout.parameters.push_back({.name = "sum", .shape = {1}});
    layout.offsets.push_back(0);
    layout.ranges.push_back({0, 1, 0, {{0, 0, 0, 1}}});
    layout.size = 1;
    layout_ = std::make_shared<const Layout>(std::move(layout));
  }

  Replica& replica_of(MemberId id) {
    const auto known = replicas_.find(id);
    if (known != replicas_.end()) return known->second;
    ExchangeOptions options;
    options.self.id = id;
    options.layout = layout_;
    options.applier = merge_applier<double>(
        [](const MergeTarget&, std::span<double> value, std::span<const double> update) {
          for (std::size_t i = 0; i < value.size(); ++i) value[i] += update[i];
        });
    if (uses_momentum_)  // with two workers and a batch of one sample, the rate is lr / 2
      options.applier = gradient_applier<double>(
          {.optimizer = models::Sgd{.lr = 2, .momentum = 0.5}, .schedule = {}});
    options.workers = 10;
    options.workers_max = 10;
    options.bsp = bsp_;
    auto initial_states = std::make_shared<std::vector<RangeState>>();
    initial_states->push_back({.range = 0, .value = slice(0), .slots = {}, .ledger = {}});
    options.initial_states = std::move(initial_states);
    return replicas_.emplace(id, Replica{std::move(options)}).first->second;
  }

  static Slice slice(double number) {
    auto single = Buffer::make<double>(1);
    single->as<double>()[0] = number;
    return {std::move(single), 0, 1, nullptr};
  }

  /// Returns a configuration in which `owners` own the range, each since an epoch. The first is the
  /// primary.
  Configuration configuration_of(Epoch epoch,
                                 std::vector<std::pair<MemberId, Epoch>> owners) const {
    Configuration configuration;
    configuration.epoch = epoch;
    for (MemberId id = 0; id < 10; ++id)
      if (!departed_.contains(id)) configuration.members.push_back({id, 0, id >= 8, id < 8});
    configuration.ranges.push_back({epoch, {}});
    for (const auto& [id, since] : owners)
      configuration.ranges[0].owners.push_back({id, since, false});
    return configuration;
  }

  /// Calls `event(replica, context)` with the replica of member `id`, and collects the messages and
  /// acknowledgements that it sends.
  template <class Event>
  auto run(MemberId id, Event event) {
    ExchangeEffects<OwnershipContext::Messages> effects;
    const OwnershipContext context{Time{}, random_, effects};
    auto& replica = replica_of(id);
    if constexpr (std::is_void_v<decltype(event(replica, context))>) {
      event(replica, context);
      collect(id, effects);
    } else {
      const auto result = event(replica, context);
      collect(id, effects);
      return result;
    }
  }

  void collect(MemberId id, const ExchangeEffects<OwnershipContext::Messages>& effects) {
    for (const auto& effect : effects) {
      const auto& sent = std::get<SendToMember<OwnershipContext::Messages>>(effect);
      if (const auto* ack = std::get_if<Ack>(&sent.message))
        acks_.push_back(ack->step);
      else
        in_flight_.push_back({id, sent.to, sent.message});
    }
  }

  /// Passes a configuration to a member.
  void adopt(MemberId id, const Configuration& configuration) {
    run(id, [&](auto& replica, const auto& context) {
      replica.on_configuration(context, configuration, epochs_[id]);
    });
    epochs_[id] = configuration.epoch;
  }

  /// Delivers a push that adds 1 (with momentum: a gradient of 1). `enters`: the push has no
  /// update; it says that the worker takes part from the round after `step` on. Returns false if it
  /// is refused.
  bool push(MemberId to, Step step, Epoch owner_epoch, bool enters = false, MemberId worker = 9) {
    const auto sent = std::make_shared<const Push>(
        Push{worker, 0, 0, step, 1, step, enters ? Slice{} : slice(1), enters, owner_epoch});
    return run(to, [&](auto& replica, const auto& context) { return replica.on(context, sent); });
  }

  /// Delivers all messages in flight to `to`, in order.
  void deliver(MemberId to) {
    for (std::size_t i = 0; i < in_flight_.size();) {
      if (in_flight_[i].to != to) {
        ++i;
        continue;
      }
      const SentMessage message = in_flight_[i];
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
      run(to, [&](auto& replica, const auto& context) {
        return std::visit(
            [&](const auto& m) {
              if constexpr (requires { replica.on(context, message.from, m); })
                return replica.on(context, message.from, m);
              return true;
            },
            message.message);
      });
    }
  }

  /// Returns the value of the range that a member holds.
  double sum(MemberId id) { return replica_of(id).shard().value<double>(0)[0]; }

  bool bsp_ = false;
  bool uses_momentum_ = false;
  /// The members that are not in the configurations; the values mean nothing.
  std::map<MemberId, int> departed_;
  std::shared_ptr<const Layout> layout_;
  std::map<MemberId, Replica> replicas_;
  std::map<MemberId, Epoch> epochs_;
  std::deque<SentMessage> in_flight_;
  std::vector<Step> acks_;
  Random random_{1};
};

TEST_F(ReplicaTest, AcknowledgesAPushOnceAllOwnersHoldIt) {
  for (const MemberId id : {0U, 1U, 2U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_TRUE(push(0, 1, 1));
  deliver(1);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
  deliver(2);
  deliver(0);
  EXPECT_EQ(acks_, std::vector<Step>{1});
  for (const MemberId id : {0U, 1U, 2U}) EXPECT_EQ(sum(id), 1);
}

TEST_F(ReplicaTest, AcknowledgesARepeatedPushOnlyOnceAllOwnersHoldIt) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  push(0, 1, 1);
  EXPECT_TRUE(acks_.empty());
  deliver(1);
  deliver(0);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 1}));
  EXPECT_EQ(sum(0), 1);
  EXPECT_EQ(sum(1), 1);
}

TEST_F(ReplicaTest, OnlyOwnerAcknowledgesAtOnce) {
  adopt(0, configuration_of(1, {{0, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(acks_, std::vector<Step>{1});
}

TEST_F(ReplicaTest, RefusesPushesOfOtherOwnerEpochsAndToOthersThanThePrimary) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  EXPECT_FALSE(push(1, 1, 1));  // not the primary
  EXPECT_FALSE(push(2, 1, 1));  // not an owner
  adopt(0, configuration_of(2, {{0, 1}}));
  EXPECT_FALSE(push(0, 1, 1));
  EXPECT_TRUE(push(0, 1, 2));
}

TEST_F(ReplicaTest, NewOwnerGetsTheStateWithAllUpdates) {
  adopt(0, configuration_of(1, {{0, 1}}));
  push(0, 1, 1);
  const auto both = configuration_of(2, {{0, 1}, {3, 2}});
  adopt(0, both);
  adopt(3, both);
  EXPECT_FALSE(replica_of(3).is_full_owner(0));
  push(0, 2, 2);
  EXPECT_EQ(acks_,
            std::vector<Step>{1});  // step 2 is not acknowledged before the new owner holds it
  deliver(3);
  EXPECT_TRUE(replica_of(3).is_full_owner(0));
  EXPECT_EQ(sum(3), 2);
  deliver(0);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 2}));
}

TEST_F(ReplicaTest, NewOwnerGetsTheOptimisersState) {
  uses_momentum_ = true;
  adopt(0, configuration_of(1, {{0, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(sum(0), -1);
  const auto both = configuration_of(2, {{0, 1}, {3, 2}});
  adopt(0, both);
  adopt(3, both);
  deliver(3);
  adopt(3, configuration_of(3, {{3, 2}}));
  push(3, 2, 3);
  EXPECT_EQ(sum(3), -2.5);  // -1 - (1 + 0.5 * 1); without the optimiser's slots, it would be -2
}

/// The primary knows sooner than another owner that a worker is gone.
TEST_F(ReplicaTest, AllOwnersWeighAPushByThePrimarysNumberOfWorkers) {
  uses_momentum_ = true;
  Configuration first = configuration_of(1, {{0, 1}, {1, 1}});
  for (const MemberId id : {0U, 1U}) adopt(id, first);
  push(0, 1, 1);
  deliver(1);
  first.epoch = 2;
  std::erase_if(first.members, [](const Member& member) { return member.id == 8; });
  adopt(0, first);
  push(0, 2, 1);
  EXPECT_EQ(sum(0), -1 - 2 * (1 + 0.5 * 1)) << "one worker is left, so its gradient counts twice";
  deliver(1);
  EXPECT_EQ(sum(1), sum(0));
}

TEST_F(ReplicaTest, FullOwnerTakesOverEvenIfItDidNotGetTheLastOwnerEpochsState) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  deliver(1);
  deliver(0);
  ASSERT_EQ(acks_, std::vector<Step>{1});
  const auto wider = configuration_of(2, {{0, 1}, {1, 1}, {2, 2}});
  for (const MemberId id : {0U, 1U, 2U}) adopt(id, wider);
  push(0, 2, 2);
  in_flight_.clear();  // member 0 dies, and all messages that it has sent are lost
  EXPECT_TRUE(replica_of(1).is_full_owner(0));
  EXPECT_FALSE(replica_of(2).is_full_owner(0));
  const auto after = configuration_of(3, {{1, 1}, {2, 2}});
  for (const MemberId id : {1U, 2U}) adopt(id, after);
  EXPECT_EQ(sum(1), 1);
  push(1, 2, 3);  // was never acknowledged, and is pushed again
  deliver(2);
  deliver(1);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 2}));
  EXPECT_EQ(sum(1), 2);
  EXPECT_EQ(sum(2), 2);
}

TEST_F(ReplicaTest, DropsItsStateIfItWasNotAnOwnerInBetween) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  adopt(0, configuration_of(2, {{0, 1}}));
  push(0, 1, 2);
  ASSERT_EQ(acks_, std::vector<Step>{1});
  // Member 1 does not learn of epoch 2, in which it owned nothing.
  const auto again = configuration_of(3, {{0, 1}, {1, 3}});
  adopt(1, again);
  EXPECT_FALSE(replica_of(1).is_full_owner(0));
  adopt(0, again);
  deliver(1);
  EXPECT_TRUE(replica_of(1).is_full_owner(0));
  EXPECT_EQ(sum(1), 1);
}

TEST_F(ReplicaTest, DropsMessagesOfAFormerOwnerEpoch) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  adopt(1, configuration_of(2, {{1, 1}, {2, 2}}));
  adopt(2, configuration_of(2, {{1, 1}, {2, 2}}));
  deliver(1);  // the Forward of member 0, in owner epoch 1
  EXPECT_EQ(sum(1), 0);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
}

TEST_F(ReplicaTest, DoesNotAcknowledgeToAnIncarnationThatIsNotAMember) {
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  departed_[9] = 1;
  auto next = configuration_of(2, {{0, 1}, {1, 1}});
  next.ranges[0].owner_epoch = 1;
  adopt(0, next);
  deliver(1);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
}

TEST_F(ReplicaTest, HandsOverOpenRoundsAndCompletesThemWithoutDeadWorkers) {
  bsp_ = true;
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1, false, 9);  // worker 8 does not push before it dies
  deliver(1);
  deliver(0);
  EXPECT_EQ(acks_, std::vector<Step>{1});
  EXPECT_EQ(sum(0), 0);
  departed_[8] = 1;
  const auto next = configuration_of(2, {{1, 1}, {3, 2}});  // 0 dies too
  adopt(1, next);
  adopt(3, next);
  deliver(3);
  EXPECT_EQ(sum(1), 1);
  EXPECT_EQ(sum(3), 1);
}

TEST_F(ReplicaTest, AwaitsAJoinerFromTheNextRoundOn) {
  bsp_ = true;
  departed_[8] = 1;
  for (const MemberId id : {0U, 1U}) adopt(id, configuration_of(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(sum(0), 1);
  departed_.clear();
  const auto next = configuration_of(2, {{0, 1}, {1, 1}});
  for (const MemberId id : {0U, 1U}) adopt(id, next);
  push(0, 2, 2, true, 8);  // takes part in all rounds after 2
  push(0, 2, 2);
  EXPECT_EQ(sum(0), 2);
  push(0, 3, 2);
  EXPECT_EQ(sum(0), 2);
  push(0, 3, 2, false, 8);
  EXPECT_EQ(sum(0), 4);
  deliver(1);
  EXPECT_EQ(sum(1), 4);
}

/// The worker dies while its push waits for the round, and joins again before the round is
/// complete.
TEST_F(ReplicaTest, SamplesOfAWorkerAreNotCountedForItsNextIncarnation) {
  bsp_ = true;
  adopt(0, configuration_of(1, {{0, 1}}));
  push(0, 1, 1, false, 9);
  auto next = configuration_of(2, {{0, 1}});
  next.members.back().incarnation = 1;
  adopt(0, next);
  const auto samples_of_new = [&] {
    for (const WorkerProgress& known : replica_of(0).shard().progress())
      if (known.worker == MemberIncarnation{9, 1}) return known.samples;
    return std::uint64_t{77};
  };
  const auto entry = std::make_shared<const Push>(Push{9, 1, 0, 1, 0, 0, Slice{}, true, 2});
  EXPECT_TRUE(run(0, [&](auto& r, const auto& context) { return r.on(context, entry); }));
  EXPECT_EQ(samples_of_new(), 0U) << "the push of the former incarnation waits";
  push(0, 1, 2, false, 8);
  EXPECT_EQ(sum(0), 2) << "with the push of the former incarnation";
  EXPECT_EQ(samples_of_new(), 0U);
}

}  // namespace
}  // namespace starling::core
