// Tests how jobs start and stop, and that they leave no threads and open files behind.
#include "starling/actor/job/job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "tests/actor/job/faulty_model.hpp"
#include "tests/waiting.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

class BspJob : public testing::Test {
 protected:
  BspJob() {
    job_.job.mode = core::Mode::central;
    job_.job.barrier = barrier::parse("bsp").value();
    job_.job.workers = 3;
    job_.job.shards = 2;
    job_.job.steps = 3000;
    job_.batch = 4;
  }
  TrainOptions job_;
};

/// A model whose parameters stay 0, 1, 2, ...
struct Numbered : FaultyModel {
  static constexpr std::size_t size = 200'000;
  static std::vector<models::Parameter> parameters() { return {{.name = "w", .shape = {size}}}; }
  static void initialise(std::span<float> w, Random&) { std::iota(w.begin(), w.end(), 0.0F); }
  static double gradient(std::span<const float>, const models::Table&, models::Batch,
                         std::span<float>, models::ComputeContext&) {
    return 0;
  }
};

/// The number of workers decides where the vector is divided into ranges.
TEST(ParametersOf, AreInOrderWhateverTheOptionsAreNow) {
  const auto data = load("linear:d=5,n=60");
  std::vector<float> expected(Numbered::size);
  std::iota(expected.begin(), expected.end(), 0.0F);
  TrainOptions options;
  options.job.barrier = barrier::parse("asp").value();
  options.job.steps = 1;
  options.job.workers = 8;
  const Outcome outcome = train<Numbered, models::Table>({}, data, nullptr, options).value();
  for (const std::size_t workers : {8U, 1U, 64U}) {
    options.job.workers = workers;
    EXPECT_EQ(parameters_of(Numbered{}, options, outcome), expected) << workers;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryMode,
                         testing::Values(core::Mode::central, core::Mode::hybrid, core::Mode::peer),
                         [](const auto& mode) { return core::print(mode.param); });

TEST_P(EveryMode, EndsInjectedDelaysWhenItStops) {
  TrainOptions job = options();
  job.job.delay = Distribution{laws::Constant{10h}};
  job.job.time = 20ms;
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::reached);
  EXPECT_GE(outcome.last.updates, 3U) << "the steps in flight are finished";
}

TEST_P(EveryMode, FailsIfItsTargetIsNoMetricOfTheModel) {
  TrainOptions job = options();
  job.job.evaluate_every = 3;
  job.job.until = Target{"lossy", 0.5, false};
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, &data_, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error,
            "until: the model has no metric 'lossy' on this test data; did you mean 'loss'? valid: "
            "loss");
}

/// Workers continue while a model is evaluated, but the job returns the model that reached the
/// target.
TEST_P(EveryMode, ReturnsTheModelThatReachedTheTarget) {
  TrainOptions job = options();
  job.job.evaluate_every = 3;
  job.job.until = Target{"loss", 0.5, false};
  job.optimizer = models::Sgd{.lr = 0.01};
  const FaultyModel model{.on_evaluate = [] { std::this_thread::sleep_for(1ms); }};
  const Outcome outcome = train<FaultyModel, models::Table>(model, data_, &data_, job).value();
  ASSERT_EQ(outcome.end, Outcome::End::reached);
  const double saved = parameters_of(model, job, outcome)[0];
  EXPECT_DOUBLE_EQ(saved, metric(outcome.last.test, "loss"));
  EXPECT_LE(saved, 0.5);
}

/// While a checkpoint is saved, at most one other waits, and further ones are skipped.
TEST_F(BspJob, SavesCompleteRoundsAndSkipsSomeIfSavingIsSlow) {
  std::vector<core::Step> rounds;
  job_.job.checkpoint_every = 3;
  job_.job.on_checkpoint = [&](const std::vector<core::RangeState>& states, const auto&) {
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
  EXPECT_LT(rounds.size(), 1000U) << "saving was not slow enough to skip rounds";
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
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::stopped);
  EXPECT_GT(outcome.last.updates, 20U);
  EXPECT_GT(shown, 0);
  EXPECT_FALSE(outcome.model.empty());
}

TEST_P(EveryMode, StopsWhenTheProgressCallbackReturnsFalse) {
  TrainOptions job = options();
  job.job.progress_every = 1ms;
  job.job.on_progress = [](const Progress&) { return false; };
  EXPECT_EQ((train<FaultyModel, models::Table>({}, data_, nullptr, job).value().end),
            Outcome::End::stopped);
}

TEST_P(EveryMode, StopsAtItsTargetAndAtItsTime) {
  TrainOptions job = options();
  job.job.evaluate_every = 5;
  job.job.until = Target{"loss", 0.5, false};
  job.optimizer = models::Sgd{.lr = 0.01};
  EXPECT_EQ((train<FaultyModel, models::Table>({}, data_, &data_, job).value().end),
            Outcome::End::reached);
  job = options();
  job.job.time = 50ms;
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::reached);
  EXPECT_GE(outcome.last.elapsed, 50ms);
}

TEST_P(EveryMode, UsesThePredicateOfTheUser) {
  TrainOptions job = options();
  job.job.time.reset();
  job.job.steps = 40;
  std::atomic<int> asked = 0;
  job.job.barrier = barrier::sampled(
      barrier::Predicate::make("half",
                               [&](barrier::Step own, std::span<const barrier::Step> seen) {
                                 ++asked;
                                 const auto on_pace = std::ranges::count_if(
                                     seen, [&](barrier::Step s) { return s + 1 >= own; });
                                 return 2 * on_pace >= std::ssize(seen);
                               }),
      2);
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_GE(asked, 39 * 3);
}

TEST_P(EveryMode, SlowsStepsByDelaysAndStragglers) {
  TrainOptions job = options();
  job.job.barrier = barrier::parse("asp").value();
  job.job.time = 400ms;
  job.job.delay = parse_distribution("const:5ms").value();
  job.job.stragglers = {parse_straggler("1:8x").value()};
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_LT(2 * outcome.last.spread.min, outcome.last.spread.max);
  // A stop cuts the delay of the step in flight short. A busy machine makes fewer steps.
  const auto steps_max = [&](core::Time delay) {
    return static_cast<core::Step>(outcome.last.elapsed / delay) + 1;
  };
  EXPECT_LE(outcome.last.spread.min, steps_max(8 * 5ms));
  EXPECT_LE(outcome.last.spread.max, steps_max(5ms));
}

/// The fast workers answer with more steps a second, so they are drawn more often than the slow
/// one.
TEST(Job, DrawsFastWorkersMoreOften) {
  const models::Table data = load("linear:d=5,n=60");
  for (const core::Mode mode : {core::Mode::hybrid, core::Mode::peer}) {
    TrainOptions job;
    job.job.mode = mode;
    job.job.workers = 8;
    job.job.time = 1500ms;
    job.job.barrier = barrier::parse("pssp:s=3,beta=1,draw=speed").value();
    job.job.delay = parse_distribution("const:5ms").value();
    job.job.stragglers = {parse_straggler("1:10x").value()};
    const auto pass_share = [&] {
      const Outcome outcome = train<FaultyModel, models::Table>({}, data, nullptr, job).value();
      EXPECT_EQ(outcome.end, Outcome::End::reached) << outcome.error;
      return static_cast<double>(outcome.last.passes) / static_cast<double>(outcome.last.draws);
    };
    const double weighted = pass_share();
    job.job.barrier.weighting = barrier::Weighting::uniform;
    EXPECT_GT(weighted, pass_share()) << core::print(mode);
  }
}

/// With 5 samples, 4 workers and batches of 1, only one worker has a sample in each second step.
TEST(Job, LeavesStepsWithoutSamplesOutOfTheLoss) {
  const models::Table data{1, 0, models::Table::Dense{std::vector<float>(5, 0.0F)},
                           std::vector<float>(5, 1.0F)};
  const auto model = models::Linear<float>::parse(Spec::parse("linear").value(), data).value();
  TrainOptions job;
  job.job.mode = core::Mode::central;
  job.job.barrier = barrier::parse("bsp").value();
  job.job.workers = 4;
  job.job.steps = 100;
  job.batch = 1;
  job.optimizer = models::Sgd{.lr = 0};
  EXPECT_DOUBLE_EQ(train(model, data, nullptr, job).value().last.loss, 0.5);
}

TEST(Job, RefusesInvalidOptions) {
  const models::Table data = load("linear:d=5,n=60");
  const auto refusal = [&](auto change) {
    TrainOptions options = endless_options();
    change(options);
    const auto outcome = train<FaultyModel, models::Table>({}, data, nullptr, options);
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
            "straggler 9:2x: more stragglers than the job's 3 workers; valid: up to 3 in all");
  EXPECT_EQ(refusal([](TrainOptions& o) {
              o.job.stragglers = {parse_straggler("1:away=1s/2s").value()};
            }),
            "straggler 1:away=1s/2s: only simulated workers can be away; valid: slow ones, as "
            "1:4x, or `starling sim`");
  EXPECT_NE(refusal([](TrainOptions& o) {
              o.job.barrier = {barrier::Bsp{}};
            }).find("valid there: pbsp:beta=2, "),
            std::string::npos);
  EXPECT_NE(refusal([](TrainOptions& o) {
              o.job.recheck = barrier::Recheck::central();
            }).find("works in central mode only"),
            std::string::npos);
  EXPECT_EQ(refusal([](TrainOptions& o) { o.l2 = -1; }), "l2=-1: must be a finite number >= 0");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.l2 = std::nan(""); }),
            "l2=nan: must be a finite number >= 0");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.optimizer = models::Adam{.beta1 = 1}; }),
            "adam: beta1=1 is 1 as a float; valid: 0 to 0.9999999");
  for (const auto& [change, option] :
       {std::pair{+[](TrainOptions& o) { o.schedule = models::StepRate{.every = 0}; }, "every"},
        std::pair{+[](TrainOptions& o) { o.schedule = models::CosineRate{.samples = 0}; },
                  "samples"},
        std::pair{+[](TrainOptions& o) { o.clip = models::NormClip{.limit = -1}; }, "limit"},
        std::pair{+[](TrainOptions& o) { o.compression = models::TopK{.share = 1.5}; }, "share"},
        std::pair{+[](TrainOptions& o) {
                    o.job.barrier = barrier::sampled(barrier::Predicate{"own", nullptr}, 2);
                  },
                  "own has no function"}})
    EXPECT_NE(refusal(change).find(option), std::string::npos) << refusal(change);
  EXPECT_NE(refusal([](TrainOptions& o) { o.job.barrier.sample = 3; }).find("valid: beta = 0 to 2"),
            std::string::npos);
}

/// Returns the number of entries of a folder, such as one of /proc/self.
std::ptrdiff_t count_entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator{folder}, {});
}

TEST(Job, StartsAndStopsAThousandTimesWithoutLeavingAnything) {
  const models::Table data = load("linear:d=5,n=60");
  TrainOptions options;
  options.job.workers = 2;
  options.job.steps = 2;
  options.job.barrier = barrier::parse("pbsp:beta=1").value();
  const auto run_once = [&](int i) {
    options.job.mode = static_cast<core::Mode>(i % 3);
    return train<FaultyModel, models::Table>({}, data, nullptr, options).value().last.updates;
  };
  run_once(0);  // at first use, libraries start threads and open files that they keep
  const auto threads = count_entries("/proc/self/task");
  const auto files = count_entries("/proc/self/fd");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(run_once(i), 4U);
  // A joined thread may be listed for a moment longer.
  EXPECT_TRUE(wait_until([&] { return count_entries("/proc/self/task") <= threads; }))
      << count_entries("/proc/self/task") << " threads are left, there were " << threads;
  EXPECT_LE(count_entries("/proc/self/fd"), files);
}

/// A user's actor asks each member each question, before the members start.
TEST(Members, RefuseQuestionsToRolesThatTheyDoNotHave) {
  TrainOptions job;
  job.job.mode = core::Mode::central;
  job.job.barrier = barrier::parse("asp").value();
  job.job.workers = 2;
  job.job.shards = 1;
  job.job.steps = 5;
  job.batch = 4;
  std::vector<std::string> refusals;
  std::vector<core::Step> steps;
  int values = 0;
  job.job.on_start = [&](const JobActorsPtr& actors, caf::actor_system& system) {
    const CafThreadScope scope;
    caf::scoped_actor self{system};
    const auto refused = [&](const caf::error& why) { refusals.push_back(to_string(why)); };
    std::vector<MemberHandle> members = actors->workers;
    members.insert(members.end(), actors->owners.begin(), actors->owners.end());
    members.push_back(actors->coordinator);
    for (const MemberHandle& member : members) {
      self->request(member, 5s, step_atom_v)
          .receive([&](core::Step step) { steps.push_back(step); }, refused);
      self->request(member, 5s, read_atom_v, core::AskValue{0, nullptr})
          .receive([&](const core::Value&) { ++values; }, refused);
      if (member != actors->coordinator)
        self->request(member, 5s, steps_atom_v)
            .receive([](const core::StepsReport&) { FAIL() << "only the coordinator"; }, refused);
    }
  };
  const Outcome outcome =
      train<FaultyModel, models::Table>({}, load("linear:d=5,n=60"), nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(steps, (std::vector<core::Step>{0, 0})) << "both workers answer";
  EXPECT_EQ(values, 1) << "the owner answers";
  ASSERT_EQ(refusals.size(), 8U) << "two steps, three values, three times all steps";
  EXPECT_EQ(std::ranges::count_if(refusals,
                                  [](const std::string& why) {
                                    return why.find("server (member 2) computes no updates") !=
                                           std::string::npos;
                                  }),
            1);
}

}  // namespace
}  // namespace starling::actor
