/// Tests of barriers that decide by the paces of a sample: at a SampleGate, whose answers bring the
/// paces, and at a Coordinator, which knows them.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"
#include "tests/engine/core/initial_workers.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;
using barrier::Dssp;
using barrier::Fluent;
using barrier::Pace;

WorkerIds ids(std::vector<MemberId> all) {
  return std::make_shared<const std::vector<MemberId>>(std::move(all));
}

/// The queries in a list of effects: the workers asked, and the number of the draw.
std::vector<std::pair<MemberId, std::uint64_t>> queries_in(const Effects& effects) {
  std::vector<std::pair<MemberId, std::uint64_t>> queries;
  for (const Effect& effect : effects)
    if (const auto* send = std::get_if<Send>(&effect))
      if (const auto* query = std::get_if<StepQuery>(&send->message))
        queries.emplace_back(std::get<ToMember>(send->to).id, query->draw);
  return queries;
}

/// Returns the answer of a worker that makes a step in each `interval`, and has just pushed.
StepAnswer answer_of(MemberId from, std::uint64_t draw, Step step, Time interval) {
  const auto ns = static_cast<std::uint64_t>(interval.count());
  return {from, draw, step,
          PaceReport{.since_push_ns = 0, .interval_ns = ns, .duration_ns = ns, .waits = false}};
}

/// Worker 0 of four, whose steps take 10 ms, at pdssp:low=1,high=6,beta=2.
class RunningGate : public testing::Test {
 protected:
  explicit RunningGate(barrier::Recheck recheck = {.notify = true})
      : gate_{barrier::sampled(Dssp{1, 6, false}, 2), recheck, 0, ids({0, 1, 2, 3})} {}

  /// Makes the next step. Returns true if the gate lets the worker pass at once.
  bool make_step() {
    now_ += 10ms;
    out_.clear();
    gate_.on_push(context(), 10ms);
    return gate_.begin(context(), ++step_, 5ms);
  }
  /// Makes steps up to the first at which the gate asks others.
  void make_steps_until_asked() {
    while (make_step()) ASSERT_TRUE(queries_in(out_).empty());
    ASSERT_EQ(queries_in(out_).size(), 2U);
  }
  [[nodiscard]] Context context() { return {now_, random_, out_}; }
  [[nodiscard]] std::uint64_t draw() const { return queries_in(out_).at(0).second; }
  [[nodiscard]] MemberId asked(std::size_t i) const { return queries_in(out_).at(i).first; }

  SampleGate gate_;
  Time now_{};
  Step step_ = 0;
  Random random_{1};
  Effects out_;
};

TEST_F(RunningGate, AsksAgainOnlyAfterItsRunEnds) {
  make_steps_until_asked();
  ASSERT_EQ(step_, 2U) << "up to `low` it cannot be too far ahead";
  const std::uint64_t number = draw();
  const MemberId other = asked(1);
  EXPECT_FALSE(gate_.on(context(), answer_of(asked(0), number, 0, 33ms)));
  EXPECT_EQ(gate_.laggard(), std::nullopt) << "a laggard alone does not decide before a wait";
  EXPECT_TRUE(gate_.on(context(), answer_of(other, number, 2, 10ms)));
  // The slowest pushes at 33 ms after now, and 3 steps take 30 ms; 5 are the most.
  EXPECT_EQ(gate_.run_end(), 5U);
  EXPECT_EQ(gate_.counts().draws, 1U);
  EXPECT_TRUE(make_step());
  EXPECT_TRUE(queries_in(out_).empty());
  EXPECT_TRUE(make_step());
  EXPECT_TRUE(queries_in(out_).empty());
  EXPECT_FALSE(make_step());
  EXPECT_EQ(step_, 5U);
  EXPECT_EQ(queries_in(out_).size(), 2U) << "the run is over";
  EXPECT_EQ(gate_.counts().draws, 2U);
}

TEST_F(RunningGate, IgnoresStaleAndUnaskedAnswers) {
  make_steps_until_asked();
  const std::uint64_t number = draw();
  const MemberId first = asked(0);
  const MemberId second = asked(1);
  const MemberId unasked = 6 - first - second;
  EXPECT_FALSE(gate_.on(context(), answer_of(first, number - 1, 0, 33ms))) << "an older draw";
  EXPECT_FALSE(gate_.on(context(), answer_of(unasked, number, 0, 33ms)));
  EXPECT_FALSE(gate_.on(context(), answer_of(first, number, 2, 10ms)));
  EXPECT_FALSE(gate_.on(context(), answer_of(first, number, 0, 33ms))) << "it has answered";
  EXPECT_TRUE(gate_.on(context(), answer_of(second, number, 2, 10ms)));
  EXPECT_EQ(gate_.run_end(), 3U) << "it just passes, for it has seen no laggard";
  EXPECT_FALSE(gate_.on(context(), answer_of(second, number, 0, 33ms))) << "the draw is decided";
  EXPECT_EQ(gate_.run_end(), 3U);
}

TEST_F(RunningGate, ForgetsAnswersOfExcludedWorkers) {
  make_steps_until_asked();
  const MemberId excluded = asked(0);
  const std::uint64_t number = draw();
  const MemberId other = asked(1);
  EXPECT_FALSE(gate_.on(context(), answer_of(excluded, number, 0, 33ms)));
  std::vector<MemberId> remaining{0, 1, 2, 3};
  std::erase(remaining, excluded);
  out_.clear();
  EXPECT_FALSE(gate_.on_members(context(), ids(remaining), {excluded}));
  ASSERT_EQ(queries_in(out_).size(), 2U) << "it draws again, among the two that remain";
  EXPECT_FALSE(gate_.on(context(), answer_of(other, number, 2, 10ms))) << "to the former draw";
  const auto queries = queries_in(out_);
  for (const auto& [to, again] : queries) {
    EXPECT_NE(to, excluded);
    EXPECT_EQ(gate_.on(context(), answer_of(to, again, 2, 10ms)), to == queries.back().first);
  }
  EXPECT_EQ(gate_.run_end(), 3U) << "the excluded worker, which was behind, does not count";
}

/// With `notify` only, the gate would wait for ever for the notice of an excluded laggard.
TEST_F(RunningGate, DrawsAgainIfItsLaggardIsExcluded) {
  make_steps_until_asked();
  const MemberId laggard = asked(0);
  const std::uint64_t number = draw();
  const MemberId faster = asked(1);
  EXPECT_FALSE(gate_.on(context(), answer_of(laggard, number, 0, 33ms)));
  out_.clear();
  EXPECT_FALSE(gate_.on(context(), answer_of(faster, number, 3, 10ms))) << "it is not the fastest";
  EXPECT_EQ(gate_.laggard(), laggard);
  const auto* request = std::get_if<NotifyRequest>(&std::get<Send>(out_.at(0)).message);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->floor, 1U);
  std::vector<MemberId> remaining{0, 1, 2, 3};
  std::erase(remaining, laggard);
  out_.clear();
  EXPECT_FALSE(gate_.on_members(context(), ids(remaining), {laggard}));
  EXPECT_EQ(queries_in(out_).size(), 2U);
}

/// A worker that waits runs no more, so one laggard decides its draws.
TEST_F(RunningGate, DecidesByTheFirstLaggardWhileItWaits) {
  make_steps_until_asked();
  std::uint64_t number = draw();
  const auto [laggard, faster] = std::pair{asked(0), asked(1)};
  EXPECT_FALSE(gate_.on(context(), answer_of(laggard, number, 0, 33ms)));
  EXPECT_FALSE(gate_.on(context(), answer_of(faster, number, 3, 10ms)));
  out_.clear();
  now_ += 1ms;
  EXPECT_FALSE(gate_.on(context(), Notice{laggard, number}));
  number = draw();
  EXPECT_FALSE(gate_.on(context(), answer_of(asked(1), number, 0, 33ms)));
  EXPECT_EQ(gate_.laggard(), asked(1)) << "though the other has not answered";
}

TEST_F(RunningGate, TellsItsPaceInDurations) {
  EXPECT_EQ(gate_.pace_report(now_), std::nullopt) << "it has not pushed";
  (void)make_step();
  (void)make_step();
  const auto report = gate_.pace_report(now_ + 4ms);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->since_push_ns, 4'000'000U);
  EXPECT_EQ(report->interval_ns, 10'000'000U);
  EXPECT_EQ(report->duration_ns, 10'000'000U);
  EXPECT_FALSE(report->waits);
}

/// The paces of silent workers are not known, so the worker waits, as at other barriers.
TEST_F(RunningGate, WaitsIfSeenWorkersAreSilent) {
  make_steps_until_asked();
  EXPECT_FALSE(gate_.on(context(), answer_of(asked(0), draw(), 2, 10ms)));
  now_ += query_timeout;
  EXPECT_FALSE(gate_.on_timer(context()));
  EXPECT_EQ(gate_.counts().passes, 0U);
}

TEST(SampleGate, TellsNoPaceIfItsBarrierNeedsNone) {
  SampleGate gate{barrier::sampled(barrier::Bsp{}, 1), {.notify = true}, 0, ids({0, 1})};
  Random random{1};
  Effects out;
  gate.on_push({10ms, random, out}, 10ms);
  EXPECT_EQ(gate.pace_report(11ms), std::nullopt);
  EXPECT_EQ(random(), Random{1}()) << "other barriers draw as before";
}

TEST(SampleGate, LearnsWeightsFromAnswersWithPaces) {
  SampleGate gate{barrier::sampled(Dssp{1, 6}, 2, barrier::Weighting::speed),
                  {.notify = true},
                  0,
                  ids({0, 1, 2, 3})};
  Random random{1};
  Effects out;
  const Context context{20ms, random, out};
  gate.on_push(context, 10ms);
  ASSERT_FALSE(gate.begin(context, 2, 5ms));
  for (const auto& [to, draw] : queries_in(std::exchange(out, {})))
    (void)gate.on(context, answer_of(to, draw, 2, 10ms));
  EXPECT_EQ(gate.counts().passes, 1U);
  ASSERT_NE(gate.weights(), nullptr);
  EXPECT_EQ(gate.weights()->remembered(), 2U);
}

// --- the same decisions everywhere --------------------------------------------------------------

constexpr MemberId workers = 5;

/// The workers that an event has let go on, and the step up to which each may.
using Released = std::map<MemberId, Step>;

/// Five workers that a Coordinator lets go on. A push happens at a time of its own, with random
/// numbers of its own, so that two systems may be compared push by push.
class CentralWorkers {
 public:
  explicit CentralWorkers(barrier::Barrier barrier)
      : coordinator_{{.barrier = std::move(barrier), .recheck = {.arrival = true}}} {
    add_initial_workers(coordinator_, std::vector<Step>(workers));
  }

  Released push(MemberId worker, Step step, bool runs, Time now, std::uint64_t seed) {
    Random random{seed};
    Effects out;
    coordinator_.on({now, random, out}, Arrived{worker, step, runs});
    Released released;
    for (const Effect& effect : out)
      if (const auto* send = std::get_if<Send>(&effect))
        if (const auto* proceed = std::get_if<Proceed>(&send->message))
          released[std::get<ToMember>(send->to).id] = std::max(proceed->until, proceed->step + 1);
    return released;
  }

 private:
  Coordinator coordinator_;
};

/// Five workers that ask each other, without delay. Waiting workers ask again at each push.
class AskingWorkers {
 public:
  explicit AskingWorkers(const barrier::Barrier& barrier) {
    for (MemberId id = 0; id < workers; ++id)
      gates_.emplace_back(barrier, barrier::Recheck{.interval = 1ns}, id, ids({0, 1, 2, 3, 4}));
  }

  Released push(MemberId worker, Step step, bool runs, Time now, std::uint64_t seed) {
    Random random{seed};
    Effects out;
    const Context context{now, random, out};
    Released released;
    steps_[worker] = step;
    gates_[worker].on_push(context, now - released_at_[worker]);
    const bool passes = gates_[worker].begin(context, step, 1ns);
    EXPECT_TRUE(!runs || passes);
    if (passes || ask(worker, context))
      release(worker, runs, now, released);
    else
      waiting_.push_back(worker);
    std::erase_if(waiting_, [&](MemberId other) {
      if (other == worker) return false;
      const bool passes_now = gates_[other].on_timer(context) || ask(other, context);
      if (passes_now) release(other, false, now, released);
      return passes_now;
    });
    return released;
  }

  [[nodiscard]] const SampleGate& gate(MemberId id) const { return gates_[id]; }

 private:
  /// Answers the worker's questions. Returns true if it passes.
  bool ask(MemberId worker, const Context& context) {
    for (const auto& [to, draw] : queries_in(std::exchange(context.out, {})))
      if (gates_[worker].on(context,
                            StepAnswer{to, draw, steps_[to], gates_[to].pace_report(context.now)}))
        return true;
    return false;
  }
  void release(MemberId worker, bool runs, Time now, Released& released) {
    released_at_[worker] = now;
    if (!runs) released[worker] = std::max(gates_[worker].run_end(), steps_[worker] + 1);
  }

  std::deque<SampleGate> gates_;
  std::vector<Step> steps_ = std::vector<Step>(workers);
  std::vector<Time> released_at_ = std::vector<Time>(workers);
  std::vector<MemberId> waiting_;
};

/// Makes random workers push; worker 0 is slow. Calls `check` after each push with the worker, its
/// step, whether it ran, the time and a seed; it returns the workers that go on.
template <class Check>
void make_pushes(std::uint64_t seed, Check check) {
  Random random{seed};
  Time now{};
  std::vector<Step> steps(workers);
  std::vector<Step> until(workers, 1);
  for (int pushes = 0; pushes < 2000; ++pushes) {
    now += Time{1 + random.below(1'000'000)};
    std::vector<MemberId> going;
    for (MemberId id = 0; id < workers; ++id)
      if (steps[id] < until[id]) going.insert(going.end(), id == 0 ? 1 : 4, id);
    ASSERT_FALSE(going.empty());
    const MemberId worker = going[random.below(going.size())];
    const bool runs = ++steps[worker] < until[worker];
    for (const auto& [id, end] : check(worker, steps[worker], runs, now, random())) until[id] = end;
    if (testing::Test::HasFailure()) return;
  }
}

/// Returns the rule that `text` names. `quick` is a user's: nobody waits for a worker that has
/// needed 10 ms or more for its last step.
barrier::AnyRule rule_of(const std::string& text) {
  const auto quick =
      barrier::Predicate::of_paces("quick", [](const Pace& own, std::span<const Pace> others) {
        return std::ranges::none_of(others, [&](const Pace& other) {
          return other.step < own.step && other.duration < 10ms;
        });
      });
  return barrier::parse(text, std::span{&quick, 1}).value().rule;
}

class SampleOfAllOthers : public testing::TestWithParam<const char*> {};

TEST_P(SampleOfAllOthers, DecidesAsTheRuleOverAllWorkers) {
  const barrier::AnyRule rule = rule_of(GetParam());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CentralWorkers all{{rule}};
    CentralWorkers drawn{barrier::sampled(rule, workers - 1)};
    AskingWorkers asking{barrier::sampled(rule, workers - 1)};
    std::size_t runs_seen = 0;
    std::size_t waits = 0;
    make_pushes(seed, [&](MemberId worker, Step step, bool runs, Time now, std::uint64_t random) {
      const Released expected = all.push(worker, step, runs, now, random);
      EXPECT_EQ(drawn.push(worker, step, runs, now, random), expected) << "step " << step;
      EXPECT_EQ(asking.push(worker, step, runs, now, random), expected) << "step " << step;
      runs_seen += runs ? 1 : 0;
      waits += !runs && !expected.contains(worker) ? 1 : 0;
      return expected;
    });
    EXPECT_GT(waits, 100U);
    EXPECT_EQ(runs_seen > 10, std::holds_alternative<Dssp>(rule));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SampleOfAllOthers,
                         testing::Values("dssp:low=2,high=9", "dssp:low=2,high=9,cap",
                                         "fluent:s=2,p=0.5", "fluent:s=2,p=1", "quick"));

/// With probability 1, of the workers in a sample only the fastest pauses, and then until all that
/// it draws are near; a slower one passes, however far behind others are.
TEST(SampledFluent, PausesOnlyTheFastestSeen) {
  constexpr Step staleness = 2;
  AskingWorkers asking{barrier::sampled(Fluent{staleness, 1}, 2)};
  std::size_t differs_from_ssp = 0;
  make_pushes(7, [&](MemberId worker, Step step, bool runs, Time now, std::uint64_t random) {
    const Released released = asking.push(worker, step, runs, now, random);
    const auto others = asking.gate(worker).seen_paces();
    if (step > staleness) {
      EXPECT_EQ(others.size(), 2U);
      const bool is_near = std::ranges::all_of(
          others, [&](const Pace& other) { return other.step + staleness >= step; });
      const bool is_fastest =
          std::ranges::all_of(others, [&](const Pace& other) { return other.step <= step; });
      EXPECT_EQ(released.contains(worker), is_near || !is_fastest) << "at step " << step;
      differs_from_ssp += !is_near && !is_fastest ? 1 : 0;
    }
    return released;
  });
  EXPECT_GT(differs_from_ssp, 10U);
}

}  // namespace
}  // namespace starling::core
