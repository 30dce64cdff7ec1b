// How jobs begin, end, fail and recover.
#include "starling/actor/job/job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "tests/actor/cluster/small_jobs.hpp"

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
  /// Throws, as an exception or something else, when it is evaluated.
  std::function<void()> on_evaluate = [] {};

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
    on_evaluate();
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

class BulkJob : public testing::Test {
 protected:
  BulkJob() {
    job_.job.mode = core::Mode::central;
    job_.job.barrier = barrier::parse("bsp").value();
    job_.job.workers = 3;
    job_.job.shards = 2;
    job_.job.steps = 3000;
    job_.batch = 4;
  }
  TrainOptions job_;
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

TEST_P(EveryMode, SaysThatItsLastEvaluationFailedAndKeepsTheModel) {
  TrainOptions job = options();
  job.job.steps = 5;
  const MoodyModel model{.on_evaluate = [] { throw std::runtime_error{"no figures"}; }};
  Outcome outcome = train<MoodyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "evaluation: no figures");
  EXPECT_EQ(parameters_of(model, job, outcome).size(), 10U);
}

/// A user may throw anything, anywhere; the job ends with what is known of it, and with its model.
TEST_P(EveryMode, EndsInOrderWhateverACallbackThrows) {
  TrainOptions quick = options();
  quick.job.progress_every = 1ms;
  quick.job.evaluate_every = 1;
  quick.job.checkpoint_every = 1;
  TrainOptions starts = quick;
  starts.job.on_start = [](const auto&, auto&) { throw 42; };
  TrainOptions shows = quick;
  shows.job.on_progress = [](const auto&) -> bool { throw 42; };
  TrainOptions saves = quick;
  saves.job.on_checkpoint = [](const auto&) { throw 42; };
  TrainOptions stops = quick;
  stops.job.stop_when = [](const auto&, const auto&) -> bool { throw 42; };
  const std::string unknown = ": an exception of unknown type";
  for (const auto& [job, error] : {std::pair{&starts, "on_start"},
                                   {&shows, "on_progress"},
                                   {&saves, "on_checkpoint"},
                                   {&stops, "evaluation"}}) {
    const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, *job).value();
    EXPECT_EQ(outcome.end, Outcome::End::failed);
    EXPECT_EQ(outcome.error, error + unknown);
    EXPECT_EQ(outcome.model.empty(), job == &starts) << error;
  }
  const MoodyModel evaluates{.on_evaluate = [] { throw 42; }};
  const Outcome outcome = train<MoodyModel, models::Table>(evaluates, data_, &data_, quick).value();
  EXPECT_EQ(outcome.error, "evaluation" + unknown);
}

TEST_P(EveryMode, DoesNotSitOutInjectedDelaysWhenItStops) {
  TrainOptions job = options();
  job.job.delay = Distribution{laws::Constant{10h}};
  job.job.time = 20ms;
  const Outcome outcome = train<MoodyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::reached);
  EXPECT_GE(outcome.last.updates, 3U) << "the steps under way are finished";
}

/// Steps go on while a model is evaluated; the job keeps the model that reached the target.
TEST_P(EveryMode, LeavesTheModelThatReachedTheTarget) {
  TrainOptions job = options();
  job.job.evaluate_every = 3;
  job.job.until = Target{"loss", 0.5, false};
  job.optimizer = models::Sgd{.lr = 0.01};
  const MoodyModel model{.on_evaluate = [] { std::this_thread::sleep_for(1ms); }};
  const Outcome outcome = train<MoodyModel, models::Table>(model, data_, &data_, job).value();
  ASSERT_EQ(outcome.end, Outcome::End::reached);
  const double saved = parameters_of(model, job, outcome)[0];
  EXPECT_DOUBLE_EQ(saved, metric(outcome.last.test, "loss"));
  EXPECT_LE(saved, 0.5);
}

/// A model whose parameters cannot be laid out, learned or saved is refused before anything starts.
struct OddModel : MoodyModel {
  std::vector<models::Parameter> odd;
  std::function<void()> on_initialise = [] {};

  [[nodiscard]] std::vector<models::Parameter> parameters() const { return odd; }
  void initialise(std::span<float>, Random&) const { on_initialise(); }
};

TEST(OddParameters, AreRefused) {
  const models::Table data = load("linear:d=5,n=60");
  const auto refusal = [&](
                           std::vector<models::Parameter> odd,
                           const std::function<void()>& on_initialise = [] {}) {
    const OddModel model{{}, std::move(odd), on_initialise};
    const auto outcome = train<OddModel, models::Table>(model, data, nullptr, endless());
    return outcome.ok() ? "accepted" : outcome.error().message;
  };
  EXPECT_EQ(refusal({}), "the model has no parameters: there is nothing to train");
  EXPECT_EQ(refusal({{.name = ""}}), "a parameter has no name");
  EXPECT_EQ(refusal({{.name = "a"}, {.name = "a"}}), "parameter 'a' is given twice");
  EXPECT_EQ(refusal({{.name = "a", .shape = {3, 0}}}),
            "parameter 'a': shape [3, 0] has no elements; every extent is at least 1");
  EXPECT_EQ(refusal({{.name = "a", .shape = {1UL << 40U, 1UL << 40U}}}),
            "parameter 'a': shape [1099511627776, 1099511627776] has more elements than any memory "
            "holds");
  EXPECT_EQ(refusal({{.name = "a", .row_sparse = true}}),
            "parameter 'a': a scalar has no rows; give it a shape, or make it dense");
  EXPECT_EQ(refusal({{.name = "a"}}, [] { throw std::runtime_error{"no start"}; }),
            "initialise: no start");
}

struct WrongRows : MoodyModel {
  std::vector<models::TouchedRows> rows;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "table", .shape = {4, 2}, .row_sparse = true}, {.name = "bias"}};
  }
  [[nodiscard]] std::vector<models::TouchedRows> touched(const models::Table&,
                                                         models::Batch) const {
    return rows;
  }
};

TEST(WrongRowsOf, TouchedEndTheJobWithTheReason) {
  const models::Table data = load("linear:d=5,n=60");
  const auto failure = [&](std::vector<models::TouchedRows> rows) {
    const WrongRows model{{}, std::move(rows)};
    const auto outcome = train<WrongRows, models::Table>(model, data, nullptr, endless());
    const std::string error = outcome.value().error;
    return error.substr(error.find("touched"));
  };
  EXPECT_EQ(failure({{2, {0}}}), "touched(): parameter 2: the model has no such parameter");
  EXPECT_EQ(failure({{1, {0}}}), "touched(): parameter 1: is not row-sparse");
  EXPECT_EQ(failure({{0, {2, 1}}}), "touched(): parameter 0: rows must ascend, each once");
  EXPECT_EQ(failure({{0, {1, 4}}}), "touched(): parameter 0: row 4 of 4");
}

/// However slow saving is, at most one state waits for it.
TEST_F(BulkJob, SavesWholeRoundsAndSkipsWhatASlowDiskCannotTake) {
  std::vector<core::Step> rounds;
  job_.job.checkpoint_every = 3;
  job_.job.on_checkpoint = [&](const std::vector<core::RangeState>& states) {
    rounds.push_back(states[0].round);
    for (const auto& state : states) {
      EXPECT_EQ(state.round, rounds.back());
      EXPECT_EQ(state.ledger[0].step, rounds.back());
      EXPECT_EQ(state.samples, rounds.back() * 12);
    }
    std::this_thread::sleep_for(20ms);
  };
  const Outcome outcome = train_text("softmax", load("digits:n=60"), nullptr, job_);
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  ASSERT_GE(rounds.size(), 2U);
  EXPECT_EQ(rounds.front(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(rounds));
  for (const core::Step round : rounds) EXPECT_EQ(round % 3, 0U);
  EXPECT_LT(rounds.size(), 1000U) << "the disk took them all: this shows nothing";
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
  job.job.delay = parse_distribution("const:5ms").value();
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
  once(0);  // what the libraries keep as long as the process runs
  const auto threads = entries("/proc/self/task");
  const auto files = entries("/proc/self/fd");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(once(i), 4U);
  // A thread that was joined may stand there a moment longer.
  for (int i = 0; i < 1000 && entries("/proc/self/task") > threads; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_LE(entries("/proc/self/fd"), files);
}

}  // namespace
}  // namespace starling::live
