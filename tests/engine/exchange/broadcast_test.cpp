/// Tests the broadcast exchange message by message: when an update counts, what happens to the last
/// update of a dead worker, and how a worker that joins gets its copy.
#include "starling/engine/exchange/broadcast/broadcast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace starling::core {
namespace {

/// Members 0 to 2 work; members that a test adds join. Each range counts updates.
class BroadcastTest : public testing::Test {
 protected:
  using Effect = ExchangeEffect<BroadcastContext::Messages>;
  struct InFlight {
    MemberId from;
    SendToMember<BroadcastContext::Messages> sent;
  };

  BroadcastTest() {
    now_.epoch = 1;
    for (MemberId id = 0; id < 3; ++id) now_.members.push_back({id, 1, true, true});
    now_.council = {0, 1, 2};
    start(1);
  }

  /// Starts a job with this number of ranges.
  void start(std::size_t ranges) {
    std::vector<models::Parameter> parameters;
    for (std::size_t r = 0; r < ranges; ++r)
      parameters.push_back({.name = std::to_string(r), .shape = {1}, .row_sparse = true});
    layout_ = std::make_shared<const Layout>(make_layout(std::move(parameters), sizeof(double), 1));
    ASSERT_EQ(layout_->ranges.size(), ranges);
    exchanges_.clear();
    epochs_.clear();
    for (MemberId id = 0; id < 3; ++id) adopt(id);
  }

  BroadcastExchange& exchange(MemberId id) {
    const auto known = exchanges_.find(id);
    if (known != exchanges_.end()) return known->second;
    ExchangeOptions options;
    options.self = {id, 1, true, true};
    options.layout = layout_;
    options.applier =
        merge_applier<double>([](const auto&, auto value, auto update) { value[0] += update[0]; });
    options.workers = 3;
    options.window = window_;
    std::vector<RangeState> states;
    for (RangeId r = 0; r < layout_->ranges.size(); ++r)
      states.push_back({.range = r,
                        .value = {Buffer::zeros(1, sizeof(double)), 0, 1, nullptr},
                        .slots = {},
                        .ledger = initial_ledger_});
    options.initial_states = std::make_shared<const std::vector<RangeState>>(std::move(states));
    return exchanges_.emplace(id, BroadcastExchange{options}).first->second;
  }

  template <class Event>
  void run(MemberId id, Event event) {
    ExchangeEffects<BroadcastContext::Messages> effects;
    event(exchange(id), BroadcastContext{time_, random_, effects});
    for (Effect& effect : effects) {
      if (auto* sent = std::get_if<SendToMember<BroadcastContext::Messages>>(&effect))
        in_flight_.push_back({id, *sent});
      else if (std::holds_alternative<Written>(effect))
        ++written_[id];
      else if (auto* read = std::get_if<ReadDone>(&effect))
        reads_[id] = read->values.at(0).value.as<double>()[0];
      else if (const auto* timer = std::get_if<SetTimer>(&effect))
        timer_at_ = timer->at;
      else if (const auto* failure = std::get_if<Fail>(&effect))
        failure_ = failure->why;
    }
  }
  void adopt(MemberId id) {
    run(id, [&](auto& e, const auto& c) {
      e.on_configuration(c, std::make_shared<const Configuration>(now_), epochs_[id]);
    });
    epochs_[id] = now_.epoch;
  }
  void write(MemberId id, Step step) {
    auto one = Buffer::make<double>(1);
    one->as<double>()[0] = 1;
    Update update{.parts = {}, .samples = 1};
    const std::shared_ptr<const Buffer> shared = std::move(one);
    for (RangeId r = 0; r < layout_->ranges.size(); ++r)
      update.parts.push_back({r, {shared, 0, 1, nullptr}});
    run(id, [&](auto& e, const auto& c) { e.write(c, {step, std::move(update), step}); });
  }
  void read(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.read(c, {step, std::nullopt}); });
  }
  /// Delivers the messages to `to` that are in flight now.
  void deliver(MemberId to) {
    for (InFlight& message : std::exchange(in_flight_, {})) {
      if (message.sent.to != to) {
        in_flight_.push_back(std::move(message));
        continue;
      }
      run(to, [&](auto& e, const auto& c) {
        std::visit(
            [&]<class M>(const M& m) {
              if constexpr (std::is_same_v<M, Share>)
                (void)e.on(c, message.from, std::make_shared<const Share>(m));
              else if constexpr (!std::is_same_v<M, Ended>)
                (void)e.on(c, message.from, m);
            },
            message.sent.message);
      });
    }
  }
  void drop_messages_of(MemberId from) {
    std::erase_if(in_flight_, [&](const InFlight& message) { return message.from == from; });
  }
  void remove(MemberId id) {
    ++now_.epoch;
    std::erase_if(now_.members, [&](const Member& member) { return member.id == id; });
    now_.departed.push_back({id, 1});
  }
  void add(MemberId id) {
    ++now_.epoch;
    now_.members.push_back({id, 1, true, true});
  }
  double sum(MemberId id, RangeId range = 0) { return exchange(id).copy<double>(range)[0]; }
  /// Returns how many shares are in flight from a member to another.
  [[nodiscard]] std::ptrdiff_t shares_in_flight(MemberId from, MemberId to) const {
    return std::ranges::count_if(in_flight_, [&](const InFlight& message) {
      return message.from == from && message.sent.to == to &&
             std::holds_alternative<Share>(message.sent.message);
    });
  }
  /// Returns the number of last updates that a member gives away with its copy of the first range.
  std::size_t last_updates_of(MemberId id) {
    run(id, [](auto& e, const auto& c) { (void)e.on(c, 1, CopyRequest{0}); });
    const InFlight reply = in_flight_.back();
    in_flight_.pop_back();
    return std::get<CopyReply>(reply.sent.message).copy->last.size();
  }

  std::shared_ptr<const Layout> layout_;
  std::vector<LedgerEntry> initial_ledger_;
  std::size_t window_ = 64;
  Configuration now_;
  std::map<MemberId, BroadcastExchange> exchanges_;
  std::map<MemberId, Epoch> epochs_;
  std::vector<InFlight> in_flight_;
  std::map<MemberId, int> written_;
  std::map<MemberId, double> reads_;
  Time time_{};
  Time timer_at_{};
  std::string failure_;
  Random random_{1};
};

TEST_F(BroadcastTest, UpdateCountsOnceAllCopiesContainIt) {
  write(0, 1);
  EXPECT_EQ(sum(0), 1) << "its own copy contains it at once";
  deliver(1);
  deliver(0);
  EXPECT_EQ(written_[0], 0) << "worker 2 lacks it";
  deliver(2);
  deliver(0);
  EXPECT_EQ(written_[0], 1);
  EXPECT_EQ(sum(1), 1);
  EXPECT_EQ(sum(2), 1);
  read(2, 0);
  EXPECT_EQ(reads_[2], 1);
}

TEST_F(BroadcastTest, LastUpdateOfADeadWorkerReachesAll) {
  write(0, 1);
  deliver(1);
  drop_messages_of(0);  // worker 2 does not get the update
  remove(0);
  adopt(1);
  deliver(2);
  EXPECT_EQ(sum(2), 1) << "worker 1 has passed it on";
  adopt(2);
  deliver(1);
  EXPECT_EQ(sum(1), 1) << "and has it only once";
  EXPECT_EQ(exchange(1).answerer(now_, 0), 1U);
  EXPECT_TRUE(exchange(1).answers_for(0));
  EXPECT_FALSE(exchange(2).answers_for(0));
}

TEST_F(BroadcastTest, LastUpdateOfADeadWorkerReachesAJoinerWhoseCopyLacksIt) {
  write(0, 1);
  deliver(1);
  drop_messages_of(0);
  remove(0);
  adopt(1);  // worker 1 sends the update to worker 2, where it does not arrive for now
  adopt(2);
  auto late = std::exchange(in_flight_, {});
  add(3);
  for (MemberId id = 1; id < 4; ++id) adopt(id);
  run(3, [](auto& e, const auto& c) { (void)e.on(c, 1, CopyReply{0, nullptr}); });
  deliver(2);
  deliver(3);
  EXPECT_EQ(sum(3), 1) << "worker 2 has given its copy, and worker 1 the update";
  in_flight_.insert(in_flight_.end(), late.begin(), late.end());
  deliver(2);
  EXPECT_EQ(sum(2), 1);
}

TEST_F(BroadcastTest, JoinerPassesOnAnUpdateThatItsCopyContains) {
  write(0, 1);
  deliver(1);  // worker 2 does not get the update
  drop_messages_of(0);
  add(3);
  for (const MemberId id : {1U, 2U, 3U}) adopt(id);
  run(3, [](auto& e, const auto& c) { (void)e.on(c, 0, CopyReply{0, nullptr}); });
  deliver(1);
  deliver(3);
  ASSERT_EQ(sum(3), 1) << "the copy of worker 1";
  drop_messages_of(1);
  remove(0);
  remove(1);
  adopt(3);
  adopt(2);
  deliver(2);
  EXPECT_EQ(sum(2), 1);
}

TEST_F(BroadcastTest, PassesOnNoMoreSharesAtATimeThanTheWindowAllows) {
  window_ = 2;
  start(5);
  write(0, 1);
  for (const MemberId id : {1U, 2U, 0U}) deliver(id);  // now sends the next two ranges
  deliver(1);
  drop_messages_of(0);  // worker 2 has ranges 0 and 1, worker 1 has 2 and 3 too
  remove(0);
  for (const MemberId id : {1U, 2U}) adopt(id);
  write(1, 1);
  for (int i = 0; i < 10; ++i)
    for (const MemberId id : {1U, 2U}) {
      EXPECT_LE(shares_in_flight(1, 2), 2);
      EXPECT_LE(shares_in_flight(2, 1), 2);
      deliver(id);
    }
  EXPECT_EQ(shares_in_flight(1, 2) + shares_in_flight(2, 1), 0);
  EXPECT_EQ(written_[1], 1);
  for (const MemberId id : {1U, 2U})
    for (RangeId range = 0; range < 5; ++range)
      EXPECT_EQ(sum(id, range), range < 4 ? 2 : 1) << "worker " << id << ", range " << range;
}

TEST_F(BroadcastTest, KeepsLastUpdatesOnlyIfWorkersMayDie) {
  write(0, 1);
  EXPECT_EQ(last_updates_of(0), 1U);
  now_.council.clear();
  start(1);
  write(0, 1);
  EXPECT_EQ(last_updates_of(0), 0U) << "all members are in one process";
}

TEST_F(BroadcastTest, NamesTheRangesOfWhichItHasACopy) {
  EXPECT_EQ(exchange(1).full_ranges(), std::vector<RangeId>{0});
  add(3);
  for (MemberId id = 0; id < 4; ++id) adopt(id);
  EXPECT_TRUE(exchange(3).full_ranges().empty());
  const std::uint64_t before = exchange(3).changes();
  deliver(0);
  deliver(3);
  EXPECT_EQ(exchange(3).full_ranges(), std::vector<RangeId>{0});
  EXPECT_GT(exchange(3).changes(), before);
}

/// Parts of a checkpoint may contain different steps of a worker, which begins at the lowest one.
/// So it may repeat a step that this part contains.
TEST_F(BroadcastTest, StepThatACheckpointContainsIsNotAppliedAgain) {
  initial_ledger_ = {{.incarnation = 1, .step = 2, .samples = 2}, {}, {.samples = 7}};
  start(1);
  for (const Step step : {2U, 3U}) {
    write(0, step);
    for (const MemberId id : {1U, 2U, 0U}) deliver(id);
    EXPECT_EQ(written_[0], static_cast<int>(step) - 1);
    for (MemberId id = 0; id < 3; ++id) EXPECT_EQ(sum(id), step - 2) << id;
  }
  const std::vector<LedgerEntry> ledger = exchange(2).state(0).ledger;
  ASSERT_EQ(ledger.size(), 3U) << "one entry for each worker, also for one without a step";
  EXPECT_EQ(ledger[0].step, 3U);
  EXPECT_EQ(ledger[2].samples, 7U);
}

TEST_F(BroadcastTest, UpdateThatAwaitsADeadWorkerCounts) {
  write(0, 1);
  deliver(1);
  deliver(0);
  remove(2);
  adopt(0);
  EXPECT_EQ(written_[0], 1);
}

TEST_F(BroadcastTest, JoinerHoldsUpUpdatesUntilItHasACopy) {
  write(1, 1);
  deliver(0);
  deliver(2);
  deliver(1);
  ASSERT_EQ(written_[1], 1);
  add(3);
  adopt(3);
  read(3, 0);
  EXPECT_EQ(reads_.count(3), 0U) << "it has no copy yet";
  for (MemberId id = 0; id < 3; ++id) adopt(id);
  write(2, 1);
  deliver(3);
  for (const InFlight& message : in_flight_)
    EXPECT_FALSE(std::holds_alternative<ShareApplied>(message.sent.message) && message.from == 3)
        << "it cannot apply the update of worker 2 yet";
  deliver(0);
  deliver(1);
  deliver(2);
  EXPECT_EQ(written_[2], 0);
  deliver(3);  // the copy of worker 0
  deliver(2);
  EXPECT_EQ(sum(3), 2);
  EXPECT_EQ(reads_[3], 2);
  EXPECT_EQ(written_[2], 1);
}

TEST_F(BroadcastTest, UpdateInFlightGoesToAJoinerToo) {
  write(0, 1);
  deliver(1);
  add(3);
  for (MemberId id = 0; id < 4; ++id) adopt(id);
  for (int i = 0; i < 3; ++i)
    for (MemberId id = 0; id < 4; ++id) deliver(id);
  EXPECT_EQ(written_[0], 1);
  for (MemberId id = 0; id < 4; ++id) EXPECT_EQ(sum(id), 1) << id;
}

TEST_F(BroadcastTest, JoinerAsksAnotherWorkerIfOneHasNoCopyAndFailsIfNobodyHas) {
  for (MemberId id = 0; id < 3; ++id) remove(id);
  add(4);
  add(5);
  adopt(4);
  adopt(5);
  deliver(5);
  deliver(4);
  EXPECT_EQ(failure_, "");
  while (failure_.empty() && time_ < std::chrono::minutes{1}) {
    ASSERT_GT(timer_at_, time_);
    time_ = timer_at_;
    run(4, [](auto& e, const auto& c) { e.on_timer(c); });
    deliver(5);
    deliver(4);
  }
  EXPECT_EQ(failure_, "no worker has a copy of the parameters; valid: start from a checkpoint");
}

TEST_F(BroadcastTest, RefusesMessagesThatNoCorrectMemberSends) {
  const ExchangeScope scope{{now_, 1, 16}, *layout_, sizeof(double)};
  const Share share{{1, 1}, 0, 1, 1, 1, {Buffer::zeros(1, sizeof(double)), 0, 1, nullptr}, 3};
  EXPECT_TRUE(is_valid(scope, share));
  Share foreign = share;
  foreign.worker = {2, 1};
  EXPECT_FALSE(is_valid(scope, foreign)) << "worker 2 sends its own";
  foreign.worker = {7, 1};
  EXPECT_FALSE(is_valid(scope, foreign)) << "was never a member";
  Share elsewhere = share;
  elsewhere.range = 1;
  EXPECT_FALSE(is_valid(scope, elsewhere));
  Share large = share;
  large.update.count = 2;
  EXPECT_FALSE(is_valid(scope, large));
  Share empty = share;
  for (const Rows& rows : {Rows{}, std::make_shared<const std::vector<std::uint32_t>>()}) {
    empty.update = {share.update.buffer, 0, 0, rows};
    EXPECT_FALSE(is_valid(scope, empty)) << "worker 1 sends no share of a range it did not change";
  }
  for (const std::uint32_t workers : {0U, 17U}) {
    Share unweighed = share;
    unweighed.workers = workers;
    EXPECT_FALSE(is_valid(scope, unweighed));
  }
  EXPECT_TRUE(is_valid(scope, CopyReply{0, nullptr}));
  EXPECT_FALSE(is_valid(scope, CopyReply{1, nullptr}));
  RangeCopy copy{
      .state = exchange(0).state(0), .progress = {{{3, 1}, 1, 1}, {{2, 1}, 1, 1}}, .last = {}};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}))
      << "the progress must ascend";
  copy.progress = {{{16, 1}, 1, 1}};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}))
      << "no member has this id";
  copy.progress.clear();
  copy.last = {share};
  EXPECT_TRUE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
  copy.last = {elsewhere};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
  copy.last = {large};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
}

}  // namespace
}  // namespace starling::core
