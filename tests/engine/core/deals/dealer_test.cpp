#include "starling/engine/core/deals/dealer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/engine/core/council/configurations.hpp"

namespace starling::core {
namespace {

constexpr std::uint64_t samples = 24;
constexpr std::uint64_t batch = 2;

DealOptions options() { return {.samples = samples, .batch = batch, .workers = 3}; }

Configuration configuration_of(Epoch epoch, std::vector<Member> members) {
  Configuration configuration;
  configuration.epoch = configuration.members_since = epoch;
  configuration.members = std::move(members);
  return configuration;
}

/// Sends the dealer the reports of all members, and returns the new deal.
std::optional<Deal> deal(Dealer& dealer, const Configuration& now,
                         const std::map<MemberId, DealReport>& reports) {
  std::optional<Deal> next;
  for (const auto& [from, report] : reports) {
    EXPECT_FALSE(next) << "not before all have reported";
    next = dealer.on(now, from, report);
  }
  return next;
}

DealReport report(Epoch epoch, const Deal& known, std::optional<std::uint64_t> taken,
                  std::optional<Step> begun) {
  return {.number = {epoch, 0}, .deal = known, .taken = taken, .begun = begun};
}

/// Returns the epochs and samples that the workers take in `steps` steps of a deal.
std::multiset<models::DealtSample> taken_in(const Dealer& dealer, const Deal& deal,
                                            std::uint64_t worker, std::uint64_t steps) {
  std::multiset<models::DealtSample> all;
  std::vector<models::DealtSample> dealt;
  for (std::uint64_t step = 0; step < steps; ++step) {
    dealer.order_of(deal).batch(worker, step, dealt);
    all.insert(dealt.begin(), dealt.end());
  }
  return all;
}

TEST(Dealer, ReportsOnceAnEpochInWhichMembersChanged) {
  Dealer dealer{options()};
  Configuration now = configuration_of(1, members_of({0, 1, 2}));
  EXPECT_FALSE(dealer.take_due_report(now)) << "the first deal needs no reports";
  now.epoch = 2;
  EXPECT_FALSE(dealer.take_due_report(now)) << "only owners have changed";
  now = configuration_of(3, members_of({0, 1}));
  EXPECT_TRUE(dealer.take_due_report(now));
  EXPECT_FALSE(dealer.take_due_report(now));
}

TEST(Dealer, DealsWhatADeadWorkerLeft) {
  Dealer dealer{options()};
  const Deal first = dealer.deal();
  const Configuration now = configuration_of(2, members_of({0, 1}));
  // Worker 0 has begun 2 steps, worker 1 one; members hold worker 2's update of step 1.
  std::map<MemberId, DealReport> reports{{0, report(2, first, 2, 2)}, {1, report(2, first, 1, 1)}};
  reports[1].progress = {{{2, 1}, 1, batch}};
  const auto next = deal(dealer, now, reports);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->workers, (std::vector<DealtWorker>{{0, 1, 2}, {1, 1, 1}}));
  // Together with what was taken, the rest of the deal is one epoch.
  auto all = taken_in(dealer, first, 0, 2);
  all.merge(taken_in(dealer, first, 1, 1));
  all.merge(taken_in(dealer, first, 2, 1));
  const std::uint64_t rest = dealer.order_of(*next).leftover_steps();
  EXPECT_EQ(rest, 4U) << "16 samples are left for 2 workers";
  for (const std::uint64_t worker : {0U, 1U}) all.merge(taken_in(dealer, *next, worker, rest));
  EXPECT_EQ(all.size(), samples);
  EXPECT_EQ(std::set<models::DealtSample>(all.begin(), all.end()).size(), samples);
}

TEST(Dealer, SaysHowFarThoseHaveGotThatAreGone) {
  Dealer dealer{options()};
  const Configuration now = configuration_of(2, members_of({1, 2}));
  DealReport own = report(2, dealer.deal(), 3, 3);
  own.progress = {{.worker = {0, 1}, .step = 14, .samples = 28}};
  const auto next = deal(dealer, now, {{1, own}, {2, report(2, dealer.deal(), 4, 4)}});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->reached, 14U);
}

TEST(Dealer, TheLatestDealThatAnyMemberKnowsCounts) {
  Dealer dealer{options()};
  const Deal first = dealer.deal();
  const Deal second =
      deal(dealer, configuration_of(2, members_of({0, 1, 2})),
           {{0, report(2, first, 1, 1)}, {1, report(2, first, 1, 1)}, {2, report(2, first, 1, 1)}})
          .value();
  // Worker 1 has begun 2 steps of the second deal, worker 0 does not know it yet, and worker 2 has
  // died after 1 step of it.
  std::map<MemberId, DealReport> reports{{0, report(3, first, 1, 1)}, {1, report(3, second, 2, 3)}};
  reports[0].progress = {{{2, 1}, 2, 2 * batch}};
  const Deal third = deal(dealer, configuration_of(3, members_of({0, 1})), reports).value();
  EXPECT_EQ(third.former.back().taken, (std::vector<models::Taken>{{0}, {2}, {1}}));
  EXPECT_EQ(third.former.size(), 2U);
}

TEST(Dealer, CountsTheSamplesOfADeadWorkerThatHadJoined) {
  Dealer dealer{options()};
  const Deal first = dealer.deal();
  std::vector<Member> members = members_of({0, 1});
  members.push_back({2, 5});  // a new incarnation of worker 2
  const Deal second = deal(dealer, configuration_of(2, members),
                           {{0, report(2, first, 1, 1)},
                            {1, report(2, first, 1, 1)},
                            {2, report(2, first, std::nullopt, std::nullopt)}})
                          .value();
  EXPECT_EQ(second.workers.back(), (DealtWorker{2, 5, std::nullopt}));
  EXPECT_EQ(second.former.back().taken.back(), models::Taken{}) << "it died before its first step";
  std::map<MemberId, DealReport> reports{{0, report(3, second, 1, 2)},
                                         {1, report(3, second, 1, 2)}};
  reports[0].progress = {{{2, 1}, 9, 18}, {{2, 5}, 9, 3}};  // 3 samples of incarnation 5
  const Deal third = deal(dealer, configuration_of(3, members_of({0, 1})), reports).value();
  EXPECT_EQ(third.former.back().taken, (std::vector<models::Taken>{{1}, {1}, {0, 3}}));
}

TEST(Dealer, WorkersThatHaveEndedGetNothing) {
  Dealer dealer{options()};
  std::map<MemberId, DealReport> reports{{0, report(2, dealer.deal(), 4, 4)},
                                         {1, report(2, dealer.deal(), 2, 2)}};
  reports[0].is_done = true;
  const Deal next = deal(dealer, configuration_of(2, members_of({0, 1})), reports).value();
  EXPECT_EQ(next.workers, (std::vector<DealtWorker>{{1, 1, 2}}));
  ASSERT_TRUE(dealer.on(configuration_of(2, members_of({0, 1})), NewDeal{next}));
  EXPECT_FALSE(dealer.part_of(0));
  EXPECT_EQ(dealer.part_of(1)->count, 1U);
}

TEST(Dealer, WithoutSamplesDividesTheWorkAmongTheRunningWorkers) {
  Dealer dealer{{.workers = 4}};
  const Configuration now = configuration_of(2, members_of({0, 1, 2}));
  std::map<MemberId, DealReport> reports{{0, report(2, dealer.deal(), 5, 5)},
                                         {1, report(2, dealer.deal(), 9, 9)},
                                         {2, report(2, dealer.deal(), 4, 4)}};
  reports[1].is_done = true;
  const auto next = deal(dealer, now, reports);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->workers, (std::vector<DealtWorker>{{0, 1, 5}, {2, 1, 4}}));
  EXPECT_TRUE(next->former.empty());
  ASSERT_TRUE(dealer.on(now, NewDeal{*next}));
  EXPECT_FALSE(dealer.part_of(1)) << "it has ended";
  const auto part = dealer.part_of(2);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->index, 1U);
  EXPECT_EQ(part->count, 2U);
  EXPECT_EQ(part->order, nullptr);
  EXPECT_FALSE(part->steps);
  EXPECT_EQ(part->common_first_step, 5U) << "no running worker has begun the step after the fifth";
  DealReport with_samples = report(2, dealer.deal(), 1, 1);
  with_samples.deal.former = {{.first_epoch = 0, .batch = 1, .taken = {{1}}}};
  reports[0] = with_samples;
  EXPECT_FALSE(deal(dealer, configuration_of(3, members_of({0, 1, 2})), reports))
      << "the job has no samples that could have been dealt";
}

TEST(Dealer, EndsWorkersAfterTheirPartOfTheEpochs) {
  DealOptions two_epochs = options();
  two_epochs.epochs = 2;
  Dealer dealer{two_epochs};
  EXPECT_EQ(dealer.part_of(0)->steps, 8U) << "2 epochs of 24 samples, 3 workers, 2 samples a step";
  const Configuration now = configuration_of(2, members_of({0, 1}));
  const Deal next =
      deal(dealer, now, {{0, report(2, dealer.deal(), 1, 1)}, {1, report(2, dealer.deal(), 1, 1)}})
          .value();
  ASSERT_TRUE(dealer.on(now, NewDeal{next}));
  EXPECT_EQ(dealer.part_of(0)->steps, 5U + 6U) << "20 samples of the first epoch are left";
}

TEST(Dealer, IgnoresDealsAndReportsOfOtherEpochs) {
  Dealer dealer{options()};
  const Configuration now = configuration_of(3, members_of({0}));
  EXPECT_FALSE(dealer.on(now, 0, report(2, dealer.deal(), 1, 1)));
  Deal other = dealer.deal();
  other.number = {2, 0};
  EXPECT_FALSE(dealer.on(now, NewDeal{other}));
  other.number = {3, 0};
  other.former = {{.first_epoch = 0, .batch = 0, .taken = {{1}}}};
  EXPECT_FALSE(dealer.on(now, NewDeal{other})) << "no batch has no samples";
  EXPECT_FALSE(dealer.on(now, 0, report(3, other, 1, 1)));
}

TEST(Dealer, GivesUpWhatIsLeftIfTheMembersChangeTooOften) {
  DealOptions many = options();
  many.samples = 10'000;  // so that an epoch does not end meanwhile
  Dealer dealer{many};
  std::size_t given_up = 0;
  for (Epoch epoch = 2; epoch < 120; ++epoch) {
    const Configuration now = configuration_of(epoch, members_of({0, 1, 2}));
    std::map<MemberId, DealReport> reports;
    for (MemberId id = 0; id < 3; ++id) reports[id] = report(epoch, dealer.deal(), 1, epoch - 1);
    const auto next = deal(dealer, now, reports);
    ASSERT_TRUE(next);
    ASSERT_TRUE(models::check_deals(next->former, many.samples));
    if (next->former.size() < dealer.deal().former.size()) {
      ++given_up;
      EXPECT_EQ(dealer.deal().former.size(), 100U);
      EXPECT_EQ(dealer.order_of(*next).first_epoch(), 1U);
      EXPECT_EQ(dealer.order_of(*next).leftover_steps(), 0U);
    }
    ASSERT_TRUE(dealer.on(now, NewDeal{*next}));
  }
  EXPECT_EQ(given_up, 1U);
}

DealOptions dynamic_options() {
  return {.samples = 1'000, .batch = 100, .dynamic = true, .workers = 3};
}

/// Returns the report of a worker that has computed `count` samples in a second.
DealReport timed_report(DealNumber number, const Deal& known, std::uint64_t count) {
  DealReport timed = report(number.epoch, known, 10, 10);
  timed.number = number;
  timed.samples = count;
  timed.nanoseconds = 1'000'000'000;
  return timed;
}

TEST(Dealer, SizesDynamicBatchesByTheSpeeds) {
  Dealer dealer{dynamic_options()};
  EXPECT_EQ(sizes_of(dealer.deal()), (std::vector<std::uint64_t>{34, 33, 33}));
  EXPECT_FALSE(dealer.take_due_revision(0, 9));
  EXPECT_TRUE(dealer.take_due_revision(0, 10)) << "an epoch has 10 steps";
  EXPECT_FALSE(dealer.take_due_revision(0, 11)) << "it has asked already";
  EXPECT_TRUE(dealer.take_due_revision(0, 20)) << "nothing has come of it";
  const Configuration now = configuration_of(1, members_of({0, 1, 2}));
  const auto call = dealer.on(now, RevisionRequest{{1, 0}});
  ASSERT_TRUE(call);
  EXPECT_EQ(call->next, (DealNumber{1, 1}));
  EXPECT_FALSE(dealer.on(now, RevisionRequest{{1, 0}})) << "it has called already";
  EXPECT_TRUE(dealer.take_due_report(now, *call));
  EXPECT_FALSE(dealer.take_due_report(now, *call)) << "it has reported already";
  const DealNumber number = dealer.reported();
  const Deal first = dealer.deal();
  EXPECT_FALSE(dealer.on(now, 0, timed_report({1, 2}, first, 1))) << "for another deal";
  const auto next = deal(dealer, now,
                         {{0, timed_report(number, first, 100)},
                          {1, timed_report(number, first, 200)},
                          {2, timed_report(number, first, 100)}});
  ASSERT_TRUE(next);
  EXPECT_EQ(sizes_of(*next), (std::vector<std::uint64_t>{25, 50, 25}));
  EXPECT_TRUE(dealer.on(now, NewDeal{*next}));
  EXPECT_FALSE(dealer.on(now, NewDeal{*next})) << "it is known";
  EXPECT_EQ(dealer.part_of(1)->batch, 50U);
  EXPECT_FALSE(dealer.on(now, RevisionRequest{{1, 0}})) << "of a former deal";
  EXPECT_TRUE(dealer.on(now, RevisionRequest{{1, 1}}));
}

TEST(Dealer, LetsADealBeginWhenAllMembersKnowIt) {
  Dealer dealer{options()};
  EXPECT_TRUE(dealer.has_begun()) << "the first deal";
  Configuration now = configuration_of(2, members_of({0, 2}));
  const Deal first = dealer.deal();
  const auto next = deal(dealer, now, {{0, report(2, first, 1, 1)}, {2, report(2, first, 1, 1)}});
  ASSERT_TRUE(next);
  ASSERT_TRUE(dealer.on(now, NewDeal{*next}));
  EXPECT_FALSE(dealer.has_begun());
  EXPECT_FALSE(dealer.on(now, BeginDeal{first.number})) << "another deal";
  EXPECT_FALSE(dealer.on(now, 0, DealReceived{next->number}));
  EXPECT_FALSE(dealer.on(now, 0, DealReceived{next->number})) << "the same member";
  EXPECT_FALSE(dealer.on(now, 2, DealReceived{first.number})) << "another deal";
  now.epoch = 3;  // only owners have changed
  const auto begin = dealer.on(now, 2, DealReceived{next->number});
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->number, next->number);
  const Configuration later = configuration_of(4, members_of({0, 2, 3}));
  EXPECT_FALSE(dealer.on(later, *begin)) << "the members have changed";
  EXPECT_FALSE(dealer.on(later, 2, DealReceived{next->number}));
  EXPECT_TRUE(dealer.on(now, *begin));
  EXPECT_TRUE(dealer.has_begun());
  EXPECT_FALSE(dealer.on(now, *begin)) << "it has begun";
}

TEST(Dealer, DoesNotBeginADealAfterItsReportForTheNextOne) {
  Dealer dealer{dynamic_options()};
  const Configuration now = configuration_of(2, members_of({0, 1}));
  const Deal first = dealer.deal();
  const auto next = deal(
      dealer, now, {{0, timed_report({2, 0}, first, 100)}, {1, timed_report({2, 0}, first, 300)}});
  ASSERT_TRUE(next);
  ASSERT_TRUE(dealer.on(now, NewDeal{*next}));
  ASSERT_TRUE(dealer.take_due_report(now, CallForReports{{2, 1}}));
  EXPECT_FALSE(dealer.on(now, BeginDeal{next->number}));
  EXPECT_FALSE(dealer.has_begun());
}

TEST(Dealer, SizesDynamicBatchesOfThoseThatAreThere) {
  Dealer dealer{dynamic_options()};
  const Configuration two = configuration_of(2, members_of({0, 1}));
  const Deal first = dealer.deal();
  const auto next = deal(
      dealer, two, {{0, timed_report({2, 0}, first, 100)}, {1, timed_report({2, 0}, first, 300)}});
  ASSERT_TRUE(next);
  EXPECT_EQ(sizes_of(*next), (std::vector<std::uint64_t>{25, 75}));
  // A call for a revision does not come through if the members change meanwhile.
  EXPECT_FALSE(dealer.on(two, RevisionRequest{{1, 0}}));
  EXPECT_FALSE(dealer.take_due_report(two, CallForReports{{1, 1}}));
  ASSERT_TRUE(dealer.on(two, NewDeal{*next}));
  std::vector<Member> members = members_of({0, 1, 3});
  const auto joined = deal(dealer, configuration_of(3, members),
                           {{0, timed_report({3, 0}, *next, 100)},
                            {1, timed_report({3, 0}, *next, 300)},
                            {3, report(3, first, std::nullopt, std::nullopt)}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(sizes_of(*joined), (std::vector<std::uint64_t>{17, 50, 33}))
      << "a worker that joins counts with the mean speed";
}

TEST(Dealer, RefusesSizesThatDoNotAddUpToTheTotal) {
  Dealer dealer{dynamic_options()};
  const Configuration now = configuration_of(2, members_of({0, 1, 2}));
  Deal next = dealer.deal();
  next.number = {2, 0};
  next.workers[0].batch += 1;
  EXPECT_FALSE(dealer.on(now, NewDeal{next}));
  next.workers[0].batch = 0;
  next.workers[1].batch = 67;
  EXPECT_FALSE(dealer.on(now, NewDeal{next})) << "a worker has no samples";
  next.workers[0].batch = 1;
  next.workers[1].batch = 66;
  EXPECT_TRUE(dealer.on(now, NewDeal{next}));
  Dealer fixed{options()};
  EXPECT_FALSE(fixed.on(now, NewDeal{next})) << "batches have one size";
}

/// A worker comes back before the deal after its death is made: its ledger entry is that of the new
/// incarnation then.
TEST(Dealer, RemembersWhatTheExchangeForgets) {
  const Configuration start = configuration_of(1, members_of({0, 1, 2}));
  Dealer dealer{options(), &start};
  const std::vector<WorkerProgress> before{{{0, 1}, 4, 8}, {{2, 1}, 3, 6}};
  const std::vector<WorkerProgress> gone =
      dealer.progress_of_departed(configuration_of(2, members_of({0, 1})), before);
  EXPECT_EQ(gone, (std::vector<WorkerProgress>{{{2, 1}, 3, 6}}));
  std::vector<Member> members = members_of({0, 1});
  members.push_back({2, 2});
  const Configuration later = configuration_of(3, members);
  const std::vector<WorkerProgress> after{{{0, 1}, 4, 8}, {{2, 2}, 4, 0}};
  EXPECT_EQ(dealer.progress_of_departed(later, after),
            (std::vector<WorkerProgress>{{{2, 1}, 3, 6}}));
  std::map<MemberId, DealReport> reports{
      {0, report(3, dealer.deal(), 4, 4)},
      {1, report(3, dealer.deal(), 4, 4)},
      {2, report(3, Dealer{options()}.deal(), std::nullopt, std::nullopt)}};
  reports[0].progress = gone;
  const Deal next = deal(dealer, later, reports).value();
  EXPECT_EQ(next.former.back().taken, (std::vector<models::Taken>{{4}, {4}, {3}}));
}

}  // namespace
}  // namespace starling::core
