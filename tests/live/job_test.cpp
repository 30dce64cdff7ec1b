// How jobs begin, end, fail and recover.
#include "starling/engine/live/job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/live/small_jobs.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;

/// Counts its gradients, and misbehaves as told.
struct MoodyModel {
  using Scalar = float;

  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  /// Throws in this many calls, from the first on.
  int tantrums = 0;
  /// From this call on the gradient is not a number.
  int nan_from = std::numeric_limits<int>::max();

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {10}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 1.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch, std::span<float> g,
                  models::Pass&) const {
    const int call = (*calls)++;
    if (call < tantrums) throw std::runtime_error{"not in the mood"};
    std::ranges::fill(g, call >= nan_from ? std::numeric_limits<float>::quiet_NaN() : 0.5F);
    return 1;
  }
  models::Metrics evaluate(std::span<const float> w, const models::Table&, models::Batch,
                           models::Pass&) const {
    return {{"loss", w[0]}};
  }
};

TrainOptions endless() {
  TrainOptions options;
  options.job.workers = 3;
  options.job.barrier = barrier::parse("pssp:s=4,beta=2").value();
  options.job.time = 1h;
  options.batch = 4;
  return options;
}

class EveryMode : public testing::TestWithParam<core::Mode> {
 protected:
  TrainOptions options() const {
    TrainOptions options = endless();
    options.job.mode = GetParam();
    return options;
  }
  models::Table data_ = load("linear:d=5,n=60");
};

INSTANTIATE_TEST_SUITE_P(Modes, EveryMode,
                         testing::Values(core::Mode::central, core::Mode::hybrid, core::Mode::peer),
                         [](const auto& mode) { return core::print(mode.param); });

TEST_P(EveryMode, TriesAThrowingStepAgain) {
  TrainOptions job = options();
  job.job.steps = 5;
  job.job.attempts = 3;
  const MoodyModel model{.tantrums = 2};
  const Outcome outcome = train<MoodyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(outcome.last.updates, 15U);
  EXPECT_EQ(*model.calls, 17);
}

TEST_P(EveryMode, GivesUpOnAStepThatKeepsThrowing) {
  TrainOptions job = options();
  job.job.steps = 5;
  job.job.attempts = 4;
  const Outcome outcome =
      train<MoodyModel, models::Table>({.tantrums = 1000}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("failed 4 times at step 1: not in the mood"), std::string::npos)
      << outcome.error;
}

TEST_P(EveryMode, StopsAtAGradientThatIsNoNumberAndKeepsTheLastGoodModel) {
  TrainOptions job = options();
  job.job.steps = 100;
  const MoodyModel model{.nan_from = 30};
  const Outcome outcome = train<MoodyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("worker "), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find(", step "), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("not finite"), std::string::npos) << outcome.error;
  const auto w = parameters_of(model, job, outcome);
  ASSERT_EQ(w.size(), 10U);
  for (const float x : w) EXPECT_TRUE(std::isfinite(x));
  EXPECT_LT(w[0], 1.0F) << "the good updates are in the model";
}

TEST_P(EveryMode, StopsWhenAsked) {
  TrainOptions job = options();
  std::stop_source source;
  job.job.stop = source.get_token();
  std::atomic<int> shown = 0;
  job.job.progress_every = 1ms;
  job.job.on_progress = [&](const Progress& progress) {
    ++shown;
    if (progress.updates > 20) source.request_stop();
    return true;
  };
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::stopped);
  EXPECT_GT(outcome.last.updates, 20U);
  EXPECT_GT(shown, 0);
  EXPECT_FALSE(outcome.model.empty());
}

TEST_P(EveryMode, StopsWhenTheProgressCallbackSaysSo) {
  TrainOptions job = options();
  job.job.progress_every = 1ms;
  job.job.on_progress = [](const Progress&) { return false; };
  EXPECT_EQ((train<MoodyModel, models::Table>({}, data_, nullptr, job).value().end),
            Outcome::End::stopped);
}

TEST_P(EveryMode, StopsAtItsTargetAndAtItsTime) {
  TrainOptions job = options();
  job.job.evaluate_every = 5;
  job.job.until = Target{"loss", 0.5, false};
  job.optimizer = models::Sgd{.lr = 0.01};
  EXPECT_EQ((train<MoodyModel, models::Table>({}, data_, &data_, job).value().end),
            Outcome::End::reached);
  job = options();
  job.job.time = 50ms;
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::reached);
  EXPECT_GE(outcome.last.elapsed, 50ms);
}

TEST_P(EveryMode, EndsWithTheErrorOfAThrowingPredicate) {
  TrainOptions job = options();
  job.job.barrier = barrier::sampled(
      barrier::Predicate::make("moody",
                               [](barrier::Step, std::span<const barrier::Step>) -> bool {
                                 throw std::runtime_error{"no opinion"};
                               }),
      2);
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("no opinion"), std::string::npos) << outcome.error;
}

TEST_P(EveryMode, APredicateOfTheUsersDecides) {
  TrainOptions job = options();
  job.job.time.reset();
  job.job.steps = 40;
  std::atomic<int> asked = 0;
  job.job.barrier = barrier::sampled(
      barrier::Predicate::make("half",
                               [&](barrier::Step own, std::span<const barrier::Step> seen) {
                                 ++asked;
                                 const auto near = std::ranges::count_if(
                                     seen, [&](barrier::Step s) { return s + 1 >= own; });
                                 return 2 * near >= std::ssize(seen);
                               }),
      2);
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_GE(asked, 39 * 3);
}

TEST_P(EveryMode, DelaysAndStragglersShowInTheSteps) {
  TrainOptions job = options();
  job.job.barrier = barrier::parse("asp").value();
  job.job.time = 400ms;
  job.job.delay = parse_delay("const:5ms").value();
  job.job.stragglers = {parse_straggler("1:8x").value()};
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_LT(2 * outcome.last.spread.min, outcome.last.spread.max);
}

TEST(Job, RefusesWhatCannotRun) {
  const models::Table data = load("linear:d=5,n=60");
  const auto refusal = [&](auto change) {
    TrainOptions options = endless();
    change(options);
    const auto outcome = train<MoodyModel, models::Table>({}, data, nullptr, options);
    return outcome ? "started" : outcome.error().message;
  };
  EXPECT_EQ(refusal([](TrainOptions& o) { o.job.workers = 0; }),
            "workers=0: a job needs at least 1 worker");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.batch = 0; }),
            "batch=0: a batch holds at least 1 sample");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.job.time.reset(); }),
            "the job would never end; valid: epochs, steps, a time (seconds), until or, in code, "
            "stop_when");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.job.stragglers = {{.count = 9, .factor = 2}}; }),
            "straggler 9:2x: more stragglers than the job's 3 workers");
  EXPECT_NE(refusal([](TrainOptions& o) {
              o.job.barrier = {barrier::Bsp{}};
            }).find("valid there: asp, pbsp"),
            std::string::npos);
  EXPECT_NE(refusal([](TrainOptions& o) {
              o.job.recheck = barrier::Recheck::central();
            }).find("works in central mode only"),
            std::string::npos);
  EXPECT_NE(refusal([](TrainOptions& o) { o.job.barrier.sample = 3; }).find("valid: beta = 0 to 2"),
            std::string::npos);
}

/// Entries of a folder of /proc that describes this process.
std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator{folder}, {});
}

TEST(Job, StartsAndStopsAThousandTimesWithoutLeavingAnything) {
  const models::Table data = load("linear:d=5,n=60");
  TrainOptions options;
  options.job.workers = 2;
  options.job.steps = 2;
  options.job.barrier = barrier::parse("pbsp:beta=1").value();
  const auto once = [&](int i) {
    options.job.mode = static_cast<core::Mode>(i % 3);
    return train<MoodyModel, models::Table>({}, data, nullptr, options).value().last.updates;
  };
  once(0);  // what the libraries keep for the life of the process
  const auto threads = entries("/proc/self/task");
  const auto files = entries("/proc/self/fd");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(once(i), 4U);
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_LE(entries("/proc/self/fd"), files);
}

}  // namespace
}  // namespace starling::live
