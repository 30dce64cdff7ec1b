// Tests how jobs resume from saved states, under every barrier.
#include <gtest/gtest.h>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

using States = std::vector<core::RangeState>;

class Resume : public testing::Test {
 protected:
  static TrainOptions options(const std::string& mode, const std::string& barrier) {
    TrainOptions options;
    options.job.mode = core::parse_mode(mode).value();
    options.job.barrier = barrier::parse(barrier).value();
    options.job.workers = 3;
    options.batch = 4;
    return options;
  }

  /// Trains `steps` steps, and returns the state at the end.
  static States states_after(TrainOptions options, core::Step steps) {
    options.job.steps = steps;
    return train_text("linear", data(), nullptr, options).model;
  }

  static const models::Table& data() {
    static const models::Table table = load("linear:d=5,n=60");
    return table;
  }
};

TEST_F(Resume, UnderBspNeedsStatesOfOneRound) {
  TrainOptions later = options("central", "bsp");
  later.job.steps = 8;
  later.resume = states_after(options("central", "bsp"), 5);
  EXPECT_EQ(train_text("linear", data(), nullptr, later).last.updates, 24U);

  later.resume = states_after(options("central", "asp"), 5);
  const auto refused =
      std::visit([&](const auto& model) { return train(model, data(), nullptr, later); },
                 model_for("linear", data()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "the saved state: holds worker 0 at step 5 of range 0, which stands at round 0; under "
            "bsp all go on from one round");
}

TEST_F(Resume, FromALargerLagThanTheBarrierAllowsLetsSlowWorkersCatchUp) {
  for (const char* barrier : {"ssp:s=2", "pssp:s=2,beta=1", "asp"}) {
    TrainOptions later = options("central", barrier);
    later.job.steps = 40;
    later.resume = states_after(options("central", "asp"), 5);
    for (auto& state : later.resume) state.ledger[1] = {0, 30, 120};
    const Outcome outcome = train_text("linear", data(), nullptr, later);
    EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    EXPECT_EQ(outcome.last.spread.min, 40U) << barrier;
    EXPECT_EQ(first_ledger_entries(outcome.model, 3)[1], (core::LedgerEntry{0, 40, 160}))
        << barrier;
  }
}

TEST_F(Resume, RefusesAStepThatNoJobReaches) {
  TrainOptions later = options("peer", "asp");
  later.resume = states_after(later, 1);
  later.resume[0].ledger[2].step = core::Step{1} << 61U;
  for (auto& state : later.resume) state.ledger[2] = later.resume[0].ledger[2];
  const auto refused = check_initial_states(later.job, later.resume);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "holds step 2305843009213693952 of worker 2, which no job reaches");
}

/// The count of Adam's updates would begin again at 0.
TEST_F(Resume, RefusesUpdatesAndSamplesThatNoJobReaches) {
  const TrainOptions later = options("peer", "asp");
  for (const auto field : {&core::RangeState::updates, &core::RangeState::samples}) {
    auto states = states_after(later, 1);
    states[0].*field = UINT64_MAX;
    const auto refused = check_initial_states(later.job, states);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("in range 0, which no job reaches"), std::string::npos)
        << refused.error().message;
  }
}

/// If a worker did not touch any row of a range lately, the ledger of the range has an old step of
/// it.
TEST_F(Resume, OfRowSparseJobsContinuesAtTheLastStepOfEachWorker) {
  const models::Table ratings = load("ratings:users=4000,items=4000,rank=2,n=90,noise=0.1");
  for (const char* mode : {"central", "hybrid", "peer"}) {
    TrainOptions first = options(mode, "asp");
    first.job.steps = 6;
    first.batch = 2;
    const Outcome half = train_text("mf:rank=64", ratings, nullptr, first);
    ASSERT_EQ(half.end, Outcome::End::completed) << half.error;
    ASSERT_GT(half.model.size(), 3U);
    for (const auto& entry : first_ledger_entries(half.model, 3))
      EXPECT_EQ(entry, (core::LedgerEntry{0, 6, 12})) << mode;

    TrainOptions second = first;
    second.job.steps = 9;
    second.resume = half.model;
    const Outcome whole = train_text("mf:rank=64", ratings, nullptr, second);
    EXPECT_EQ(whole.last.updates, 27U) << mode;
    std::uint64_t samples = 0;
    for (const auto& state : whole.model) samples = std::max(samples, state.samples);
    EXPECT_LE(samples, 54U) << mode;
    EXPECT_GT(samples, 36U) << "the learning rate schedule continues from the samples seen; "
                            << mode;
  }
}

}  // namespace
}  // namespace starling::actor
