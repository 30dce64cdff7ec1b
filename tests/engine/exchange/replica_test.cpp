/// Owners of one range, message by message: what is acknowledged when, and what a change of owners
/// carries over.
#include "starling/engine/exchange/ownership/replica.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace starling::core {
namespace {

/// Members 0, 1, 2, ... that may own the one range there is, and 9, a worker.
class Owners : public testing::Test {
 protected:
  struct Mail {
    MemberId from;
    MemberId to;
    ReplicaMessage message;
  };

  Owners() {
    Layout layout;
    layout.parameters.push_back({.name = "sum", .shape = {1}});
    layout.offsets.push_back(0);
    layout.ranges.push_back({0, 1, 0, {{0, 0, 0, 1}}});
    layout.size = 1;
    layout_ = std::make_shared<const Layout>(std::move(layout));
  }

  Replica<double>& at(MemberId id) {
    const auto known = replicas_.find(id);
    if (known != replicas_.end()) return known->second;
    ReplicaOptions<double> options;
    options.self = id;
    options.shard.layout = layout_;
    options.shard.applier = Merge<double>{
        [](const MergeSite&, std::span<double> value, std::span<const double> update) {
          for (std::size_t i = 0; i < value.size(); ++i) value[i] += update[i];
        }};
    if (momentum_)  // each push counts in full: one sample of a batch of one, from one worker
      options.shard.applier =
          GradientApplier{.optimizer = models::Sgd{.lr = 1, .momentum = 0.5}, .schedule = {}};
    options.shard.workers = momentum_ ? 1 : 10;
    options.shard.workers_max = 10;
    options.shard.bsp = bsp_;
    auto start = std::make_shared<std::vector<RangeState>>();
    start->push_back({.range = 0, .value = slice(0), .slots = {}, .ledger = {}});
    options.start = std::move(start);
    return replicas_.emplace(id, Replica<double>{std::move(options)}).first->second;
  }

  static Slice slice(double number) {
    auto one = Buffer::make<double>(1);
    one->as<double>()[0] = number;
    return {std::move(one), 0, 1, nullptr};
  }

  /// All of `ids` learn that these own the range, each with its epoch since.
  Configuration owned(Epoch epoch, std::vector<std::pair<MemberId, Epoch>> owners) const {
    Configuration configuration;
    configuration.epoch = epoch;
    for (MemberId id = 0; id < 10; ++id)
      if (!gone_.contains(id)) configuration.members.push_back({id, 0, id >= 8, id < 8});
    configuration.ranges.push_back({epoch, {}});
    for (const auto& [id, since] : owners)
      configuration.ranges[0].owners.push_back({id, since, false});
    return configuration;
  }

  template <class Event>
  auto happen(MemberId id, Event event) {
    Effects effects;
    std::vector<std::pair<MemberId, ReplicaMessage>> out;
    const Context core{Time{}, random_, effects};
    auto& replica = at(id);
    if constexpr (std::is_void_v<decltype(event(replica, ReplicaContext{core, out}))>) {
      event(replica, ReplicaContext{core, out});
      collect(id, effects, out);
    } else {
      const auto result = event(replica, ReplicaContext{core, out});
      collect(id, effects, out);
      return result;
    }
  }

  void collect(MemberId id, const Effects& effects,
               std::vector<std::pair<MemberId, ReplicaMessage>>& out) {
    for (auto& [to, message] : out) mail_.push_back({id, to, std::move(message)});
    for (const Effect& effect : effects)
      if (const auto* ack = std::get_if<Ack>(&std::get<Send>(effect).message))
        acks_.push_back(ack->step);
  }

  void learn(MemberId id, const Configuration& configuration) {
    happen(id, [&](auto& replica, const auto& context) {
      replica.on_configuration(context, configuration, epochs_[id]);
    });
    epochs_[id] = configuration.epoch;
  }

  bool push(MemberId to, Step step, Epoch view, bool enters = false, MemberId worker = 9) {
    const auto one = std::make_shared<const Push>(
        Push{worker, 0, 0, step, 1, step, enters ? Slice{} : slice(1), enters, view});
    return happen(to, [&](auto& replica, const auto& context) { return replica.on(context, one); });
  }

  /// Delivers what is on its way to `to`, in order.
  void deliver(MemberId to) {
    for (std::size_t i = 0; i < mail_.size();) {
      if (mail_[i].to != to) {
        ++i;
        continue;
      }
      const Mail mail = mail_[i];
      mail_.erase(mail_.begin() + static_cast<std::ptrdiff_t>(i));
      happen(to, [&](auto& replica, const auto& context) {
        return std::visit([&](const auto& m) { return replica.on(context, mail.from, m); },
                          mail.message);
      });
    }
  }

  double sum(MemberId id) { return at(id).shard().value(0)[0]; }

  bool bsp_ = false;
  bool momentum_ = false;
  std::map<MemberId, int> gone_;
  std::shared_ptr<const Layout> layout_;
  std::map<MemberId, Replica<double>> replicas_;
  std::map<MemberId, Epoch> epochs_;
  std::deque<Mail> mail_;
  std::vector<Step> acks_;
  Random random_{1};
};

TEST_F(Owners, AcknowledgeWhatAllOfThemHold) {
  for (const MemberId id : {0U, 1U, 2U}) learn(id, owned(1, {{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_TRUE(push(0, 1, 1));
  deliver(1);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
  deliver(2);
  deliver(0);
  EXPECT_EQ(acks_, std::vector<Step>{1});
  for (const MemberId id : {0U, 1U, 2U}) EXPECT_EQ(sum(id), 1);
}

TEST_F(Owners, AcknowledgeARepeatedPushNoSooner) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  push(0, 1, 1);
  EXPECT_TRUE(acks_.empty());
  deliver(1);
  deliver(0);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 1}));
  EXPECT_EQ(sum(0), 1);
  EXPECT_EQ(sum(1), 1);
}

TEST_F(Owners, AnswerAloneWhereTheyAreAlone) {
  learn(0, owned(1, {{0, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(acks_, std::vector<Step>{1});
}

TEST_F(Owners, RefusePushesOfOtherViewsAndForOthers) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  EXPECT_FALSE(push(1, 1, 1));  // a copy
  EXPECT_FALSE(push(2, 1, 1));  // no owner
  learn(0, owned(2, {{0, 1}}));
  EXPECT_FALSE(push(0, 1, 1));
  EXPECT_TRUE(push(0, 1, 2));
}

TEST_F(Owners, HandTheRangeToANewOneWithAllThatIsInIt) {
  learn(0, owned(1, {{0, 1}}));
  push(0, 1, 1);
  const auto both = owned(2, {{0, 1}, {3, 2}});
  learn(0, both);
  learn(3, both);
  EXPECT_FALSE(at(3).is_full(0));
  push(0, 2, 2);
  EXPECT_EQ(acks_, std::vector<Step>{1});  // not before the new one holds it too
  deliver(3);
  EXPECT_TRUE(at(3).is_full(0));
  EXPECT_EQ(sum(3), 2);
  deliver(0);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 2}));
}

TEST_F(Owners, HandOverWhatTheOptimiserRemembers) {
  momentum_ = true;
  learn(0, owned(1, {{0, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(sum(0), -1);
  const auto both = owned(2, {{0, 1}, {3, 2}});
  learn(0, both);
  learn(3, both);
  deliver(3);
  learn(3, owned(3, {{3, 2}}));
  push(3, 2, 3);
  EXPECT_EQ(sum(3), -2.5);  // -1 - (1 + 0.5 * 1): without its slots it would be -2
}

TEST_F(Owners, GoOnFromACopyThatHeldAllAndNeverGotTheNextViewsState) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  deliver(1);
  deliver(0);
  ASSERT_EQ(acks_, std::vector<Step>{1});
  const auto wider = owned(2, {{0, 1}, {1, 1}, {2, 2}});
  for (const MemberId id : {0U, 1U, 2U}) learn(id, wider);
  push(0, 2, 2);
  mail_.clear();  // 0 dies with everything that it had sent
  EXPECT_TRUE(at(1).is_full(0));
  EXPECT_FALSE(at(2).is_full(0));
  const auto after = owned(3, {{1, 1}, {2, 2}});
  for (const MemberId id : {1U, 2U}) learn(id, after);
  EXPECT_EQ(sum(1), 1);
  push(1, 2, 3);  // was never acknowledged, and so comes again
  deliver(2);
  deliver(1);
  EXPECT_EQ(acks_, (std::vector<Step>{1, 2}));
  EXPECT_EQ(sum(1), 2);
  EXPECT_EQ(sum(2), 2);
}

TEST_F(Owners, ForgetWhatTheyHeldWhereTheyWereLeftOutMeanwhile) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  learn(0, owned(2, {{0, 1}}));
  push(0, 1, 2);
  ASSERT_EQ(acks_, std::vector<Step>{1});
  // 1 has slept through epoch 2, in which it owned nothing.
  const auto again = owned(3, {{0, 1}, {1, 3}});
  learn(1, again);
  EXPECT_FALSE(at(1).is_full(0));
  learn(0, again);
  deliver(1);
  EXPECT_TRUE(at(1).is_full(0));
  EXPECT_EQ(sum(1), 1);
}

TEST_F(Owners, DropWhatComesOfAFormerView) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  learn(1, owned(2, {{1, 1}, {2, 2}}));
  learn(2, owned(2, {{1, 1}, {2, 2}}));
  deliver(1);  // the forward of 0, in view 1
  EXPECT_EQ(sum(1), 0);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
}

TEST_F(Owners, DoNotAcknowledgeToALifeThatIsGone) {
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  gone_[9] = 1;
  auto next = owned(2, {{0, 1}, {1, 1}});
  next.ranges[0].view = 1;
  learn(0, next);
  deliver(1);
  deliver(0);
  EXPECT_TRUE(acks_.empty());
}

TEST_F(Owners, CarryOpenRoundsOverAndEndThemWithoutWhoHasGone) {
  bsp_ = true;
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1, false, 9);  // worker 8 does not push before it dies
  deliver(1);
  deliver(0);
  EXPECT_EQ(acks_, std::vector<Step>{1});
  EXPECT_EQ(sum(0), 0);
  gone_[8] = 1;
  const auto next = owned(2, {{1, 1}, {3, 2}});  // and so does 0
  learn(1, next);
  learn(3, next);
  deliver(3);
  EXPECT_EQ(sum(1), 1);
  EXPECT_EQ(sum(3), 1);
}

TEST_F(Owners, AwaitWhoHasJoinedFromTheNextRoundOn) {
  bsp_ = true;
  gone_[8] = 1;
  for (const MemberId id : {0U, 1U}) learn(id, owned(1, {{0, 1}, {1, 1}}));
  push(0, 1, 1);
  EXPECT_EQ(sum(0), 1);
  gone_.clear();
  const auto next = owned(2, {{0, 1}, {1, 1}});
  for (const MemberId id : {0U, 1U}) learn(id, next);
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

}  // namespace
}  // namespace starling::core
