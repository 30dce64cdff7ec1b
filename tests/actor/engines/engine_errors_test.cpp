// Tests the exact error messages of the engines, and how jobs of engines fail.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "starling/actor/engines/engine.hpp"
#include "starling/actor/engines/engine_task.hpp"
#include "starling/actor/system.hpp"

namespace starling::actor {
namespace {

using DoubleEngine = ParameterEngine<double>;
using Updates = std::vector<Update<double>>;
using TensorList = std::vector<Tensor<double>>;

TensorList tensors() {
  return {{"weights", {2, 2}}, Tensor<double>::by_rows("table", {10, 3}), {"bias"}};
}

Updates push_nothing(StepContext<double>&) { return {}; }

/// Returns the error message of E::make(), or "accepted".
template <class E = DoubleEngine>
std::string refusal(EngineOptions options, TensorList keys = tensors(),
                    Hooks<double> hooks = {.push = push_nothing}) {
  auto engine = E::make(std::move(options), std::move(keys), std::move(hooks));
  return engine ? "accepted" : engine.error().message;
}

/// Returns the error message with which a job fails; by default a job of two workers.
std::string failure(Hooks<double> hooks, EngineOptions options = {.workers = 2, .steps = 5}) {
  auto engine = DoubleEngine::make(std::move(options), tensors(), std::move(hooks));
  if (!engine) return engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  return outcome.error;
}

/// Returns the error of a job whose worker 1 pushes `updates` in its third step.
std::string failure_of_push(Updates updates) {
  return failure({.push = [&](auto& context) {
    return context.worker() == 1 && context.step() == 2 ? updates : Updates{};
  }});
}

TEST(EngineMake, RefusesOptionsThatCannotWork) {
  EXPECT_EQ(refusal({.workers = 0, .steps = 1}),
            "parameter engine: workers=0: a job needs at least 1 worker");
  EXPECT_EQ(refusal({}),
            "parameter engine: the job would never end; valid: steps, time or the hook stop");
  EXPECT_EQ(refusal({.mode = core::Mode::peer, .steps = 1}),
            "parameter engine: mode peer does not run on this engine; valid: central, hybrid");
  EXPECT_EQ(refusal<PeerEngine<double>>({.mode = core::Mode::central, .steps = 1}),
            "peer engine: mode central does not run on this engine; valid: peer");
  EXPECT_EQ(refusal<PeerEngine<double>>({.barrier = barrier::parse("bsp").value(), .steps = 1}),
            "peer engine: barrier bsp needs to see every worker's step, which no one does in peer "
            "mode; valid there: pbsp:beta=2, pssp:s=4,beta=2, asp, pdssp:low=3,high=15,beta=2, "
            "pfluent:s=4,p=0.5,beta=2, pquorum:q=0.9,beta=2, "
            "tuned:waiting=5%, or use "
            "mode central");
  EXPECT_EQ(
      refusal(
          {.mode = core::Mode::hybrid, .barrier = barrier::parse("ssp:s=2").value(), .steps = 1}),
      "parameter engine: barrier ssp:s=2 needs to see every worker's step, which no one does "
      "in hybrid mode; valid there: pbsp:beta=2, pssp:s=4,beta=2, asp, pdssp:low=3,high=15,beta=2, "
      "pfluent:s=4,p=0.5,beta=2, pquorum:q=0.9,beta=2, "
      "tuned:waiting=5%, or "
      "use mode central");
  EXPECT_EQ(refusal({.workers = 2, .barrier = barrier::parse("pbsp:beta=2").value(), .steps = 1}),
            "parameter engine: barrier pbsp:beta=2: beta=2, but each of 2 workers has 1 other; "
            "valid: beta = 0 to 1, as in pbsp:beta=1");
  EXPECT_EQ(refusal({.barrier = barrier::Barrier{barrier::Predicate{}}, .steps = 1}),
            "parameter engine: barrier predicate has no function; make it by Predicate::make");
  EXPECT_EQ(refusal({.steps = 1, .fetch_timeout = {}}),
            "parameter engine: fetch_timeout=0ns; valid: above 0 ns");
}

TEST(EngineMake, RefusesMissingHooks) {
  EXPECT_EQ(refusal({.steps = 1}, tensors(), {}),
            "parameter engine: the hook push is missing: it computes a worker's updates and is "
            "required");
  EXPECT_EQ(refusal({.stop_every = 0}, tensors(),
                    {.push = push_nothing, .stop = [](const auto&, const auto&) { return true; }}),
            "parameter engine: stop_every=0; valid: 1 step or more");
}

TEST(EngineMake, RefusesInvalidTensors) {
  const EngineOptions one_step{.steps = 1};
  EXPECT_EQ(refusal(one_step, {}), "parameter engine: there is no key; valid: at least 1");
  EXPECT_EQ(refusal(one_step, {{"a"}, {"b"}, {"a"}}),
            "parameter engine: key 'a' is given twice; valid: each name once");
  EXPECT_EQ(refusal(one_step, {{""}}), "parameter engine: a key has no name");
  EXPECT_EQ(refusal(one_step, {{"a", {2, 2}, {1, 2, 3}}}),
            "parameter engine: key 'a': 3 values are given; valid: 4");
  EXPECT_EQ(refusal(one_step, {{"a", {2, 0}}}),
            "parameter engine: key 'a': shape [2, 0] has no elements; every extent is at least 1");
  EXPECT_EQ(refusal(one_step, {Tensor<double>::by_rows("a", {})}),
            "parameter engine: key 'a': a scalar has no rows; give it a shape, or "
            "make it dense");
  EXPECT_EQ(refusal(one_step, {Tensor<double>::by_rows("a", {2, 32'769})}),
            "parameter engine: key 'a': a row has 32769 elements; valid: at most 32768, "
            "or a key without rows, which is not made by Tensor::by_rows");
  EXPECT_EQ(refusal(one_step, {Tensor<double>::by_rows("a", {2, 32'768})}), "accepted");
}

TEST(EngineRefuses, UnknownKeysAndWrongSizes) {
  auto engine = DoubleEngine::make({.steps = 1}, tensors(), {.push = push_nothing});
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->get("weight").error().message,
            "key 'weight' is unknown; did you mean 'weights'? valid: weights, table, bias");
  EXPECT_EQ(engine->set("tables", {}).error().message,
            "key 'tables' is unknown; did you mean 'table'? valid: weights, table, bias");
  EXPECT_EQ(engine->set("weights", {1, 2}).error().message,
            "key 'weights': 2 values are given; valid: 4");
}

TEST(EngineRefuses, AccessFromOutsideWhileItRuns) {
  DoubleEngine* running = nullptr;
  std::vector<std::string> refused;
  auto engine = DoubleEngine::make({.workers = 1, .steps = 1}, tensors(), {.push = [&](auto&) {
                                     refused = {running->get("bias").error().message,
                                                running->set("bias", {1}).error().message,
                                                running->run().error};
                                     return Updates{};
                                   }});
  ASSERT_TRUE(engine);
  running = &*engine;
  EXPECT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(
      refused,
      (std::vector<std::string>{
          "get: the engine is running; valid meanwhile: StepContext::get and StepContext::fetch",
          "set: the engine is running; meanwhile only pushes change tensors",
          "run: the engine is running already"}));
  EXPECT_TRUE(engine->get("bias"));
}

TEST(EngineFails, IfAPushIsWrong) {
  EXPECT_EQ(failure_of_push({{"bais", {1}}}),
            "worker 1, step 3: push: key 'bais' is unknown; did you mean 'bias'? valid: weights, "
            "table, bias");
  EXPECT_EQ(failure_of_push({{"weights", {1, 2, 3}}}),
            "worker 1, step 3: push: key 'weights': 3 values are pushed; valid: 4");
  EXPECT_EQ(failure_of_push({{"table", {1, 2, 3}, {{4, 5}}}}),
            "worker 1, step 3: push: key 'table': 3 values are pushed; valid: 6 for 2 rows of 3");
  EXPECT_EQ(failure_of_push({{"table", {1, 2, 3}, {{10}}}}),
            "worker 1, step 3: push: key 'table': there is no row 10; valid: 0 to 9");
  EXPECT_EQ(failure_of_push({{"table", {1, 2, 3, 4, 5, 6, 7, 8, 9}, {{3, 1, 3}}}}),
            "worker 1, step 3: push: key 'table': row 3 is given twice");
  EXPECT_EQ(failure_of_push({{"weights", {1, 2}, {{1}}}}),
            "worker 1, step 3: push: key 'weights' is dense, so its rows cannot be selected; "
            "valid: the whole key, or a key made by Tensor::by_rows");
  EXPECT_EQ(failure_of_push({{"bias", {1}}, {"weights", {1, 2, 3, 4}}, {"bias", {1}}}),
            "worker 1, step 3: push: key 'bias' is pushed twice in one step; valid: one update");
  EXPECT_EQ(
      failure_of_push({{"bias", {1}}, {"weights", {1, 2, std::nan(""), 4}}}),
      "worker 1, step 3: push: key 'weights': element 2 of the update is NaN; valid: numbers");
  EXPECT_EQ(failure({.push =
                         [](auto& context) {
                           context.report(std::nan(""));
                           return Updates{};
                         }},
                    {.workers = 1, .steps = 1}),
            "worker 0, step 1: push: the reported loss is nan");
}

TEST(EngineFails, IfAScheduleIsWrong) {
  const auto failure_of_schedule = [](std::vector<Selection> selections) {
    return failure({.schedule = [&](auto&) { return selections; }, .push = push_nothing},
                   {.workers = 1, .steps = 1, .attempts = 1});
  };
  EXPECT_EQ(failure_of_schedule({{"wieghts"}}),
            "worker 0 failed 1 times at step 1: schedule: key 'wieghts' is unknown; did you mean "
            "'weights'? valid: weights, table, bias");
  EXPECT_EQ(failure_of_schedule({{"bias"}, {"bias"}}),
            "worker 0 failed 1 times at step 1: schedule: key 'bias' is asked for twice in one "
            "step");
  EXPECT_EQ(
      failure_of_schedule({{"bias", {{0}}}}),
      "worker 0 failed 1 times at step 1: schedule: key 'bias' is dense, so its rows cannot be "
      "selected; valid: the whole key, or a key made by Tensor::by_rows");
  EXPECT_EQ(
      failure_of_schedule({{"table", {{1, 12}}}}),
      "worker 0 failed 1 times at step 1: schedule: key 'table': there is no row 12; valid: 0 "
      "to 9");
}

TEST(EngineFails, IfAHookThrowsAgainAndAgain) {
  std::atomic<int> calls{0};
  const auto throws = [&](auto& context) {
    if (context.worker() == 1 && context.step() == 3) {
      ++calls;
      throw std::runtime_error{"no more"};
    }
  };
  const Hooks<double> in_push{.push = [&](auto& context) {
    throws(context);
    return Updates{};
  }};
  EXPECT_EQ(failure(in_push), "worker 1 failed 3 times at step 4: no more");
  EXPECT_EQ(calls.exchange(0), 3);
  const Hooks<double> in_schedule{.schedule =
                                      [&](auto& context) {
                                        throws(context);
                                        return std::vector<Selection>{};
                                      },
                                  .push = push_nothing};
  EXPECT_EQ(failure(in_schedule, {.workers = 2, .steps = 5, .attempts = 2}),
            "worker 1 failed 2 times at step 4: no more");
  EXPECT_EQ(calls, 2);
}

TEST(EngineFails, IfStopThrows) {
  EXPECT_EQ(failure({.push = push_nothing,
                     .stop = [](const auto&,
                                const auto& tensors) { return tensors.get("biass").empty(); }},
                    {.workers = 1}),
            "evaluation: key 'biass' is unknown; did you mean 'bias'? valid: weights, table, bias");
}

TEST(EngineFails, IfPullThrows) {
  EXPECT_EQ(
      failure({.push = [](auto&) -> Updates {
                 return {{"bias", {1}}};
               },
               .pull = [](const KeySlice&, auto, auto) { throw std::runtime_error{"too big"}; }}),
      "server (member 2): pull of key 'bias': too big");
}

TEST(EngineFails, IfAPeersPullThrows) {
  auto engine = PeerEngine<double>::make(
      {.workers = 3, .steps = 1000}, tensors(),
      {.push = [](auto&) -> Updates {
         return {{"table", std::vector<double>(30, 1)}};
       },
       .pull = [](const KeySlice&, auto, auto) { throw std::runtime_error{"too big"}; }});
  ASSERT_TRUE(engine);
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "worker 0: pull of key 'table': too big");
  EXPECT_EQ(engine->get("table").value(), std::vector<double>(30))
      << "a lost tensor keeps its initial values";
}

TEST(EngineFails, IfProgressThrows) {
  const auto error =
      failure({.push = push_nothing},
              {.workers = 2,
               .time = std::chrono::hours{1},
               .on_progress = [](const auto&) -> bool { throw std::runtime_error{"no display"}; },
               .progress_every = std::chrono::milliseconds{1}});
  EXPECT_EQ(error, "on_progress: no display");
}

TEST(EngineFails, IfOnStartThrows) {
  EXPECT_EQ(
      failure({.push = push_nothing},
              {.workers = 2,
               .steps = 1,
               .on_start = [](const auto&, auto&) { throw std::runtime_error{"not today"}; }}),
      "on_start: not today");
}

TEST(EngineReads, OnlyWhatWasScheduled) {
  std::vector<std::string> refused;
  const auto attempt = [&](auto read) {
    try {
      read();
    } catch (const std::invalid_argument& fault) {
      refused.emplace_back(fault.what());
    }
  };
  auto engine =
      DoubleEngine::make({.workers = 1, .steps = 1}, tensors(),
                         {.schedule =
                              [&](auto& context) {
                                attempt([&] { (void)context.get("bias"); });
                                return std::vector<Selection>{{"table", {{8, 2}}}};
                              },
                          .push =
                              [&](auto& context) {
                                attempt([&] { (void)context.get("bias"); });
                                attempt([&] { (void)context.get("tabel"); });
                                attempt([&] { (void)context.row("table", 3); });
                                EXPECT_EQ(context.row("table", 8).size(), 3U);
                                refused.push_back(context.fetch({"biast"}).error().message);
                                refused.push_back(context.fetch({"table", {{99}}}).error().message);
                                return Updates{};
                              }});
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(refused,
            (std::vector<std::string>{
                "key 'bias': nothing is read yet in schedule; use fetch",
                "key 'bias' was not read: schedule did not ask for it",
                "key 'tabel' is unknown; did you mean 'table'? valid: weights, table, bias",
                "key 'table': row 3 was not read",
                "key 'biast' is unknown; did you mean 'bias'? valid: weights, table, bias",
                "key 'table': there is no row 99; valid: 0 to 9"}));
}

TEST(EngineReads, NoRowsIfNoneAreScheduled) {
  auto engine = DoubleEngine::make(
      {.workers = 1, .steps = 1}, tensors(),
      {.schedule =
           [](auto&) {
             return std::vector<Selection>{{"table", std::vector<std::uint32_t>{}}};
           },
       .push =
           [](auto& context) {
             EXPECT_TRUE(context.get("table").empty());
             return Updates{{"table", {}, std::vector<std::uint32_t>{}}};
           }});
  ASSERT_TRUE(engine);
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
}

/// The hook `pull` blocks the owner until a fetch from it has failed. It may also block the only
/// thread that actors have, so worker 1 pushes only after worker 0, which fetches, has begun its
/// step.
TEST(EngineReads, GiveUpOnABusyOwner) {
  std::atomic<bool> begun{false};
  std::atomic<bool> given_up{false};
  std::string message;
  auto engine = DoubleEngine::make({.workers = 2,
                                    .barrier = barrier::parse("asp").value(),
                                    .shards = 1,
                                    .steps = 1,
                                    .compute_threads = 2,
                                    .fetch_timeout = std::chrono::milliseconds{20}},
                                   tensors(),
                                   {.schedule = [](auto&) { return std::vector<Selection>{}; },
                                    .push = [&](auto& context) -> Updates {
                                      if (context.worker() == 1) {
                                        begun.wait(false);
                                        return {{"bias", {1}}};
                                      }
                                      begun = true;
                                      begun.notify_all();
                                      for (;;) {
                                        const auto read = context.fetch({"bias"});
                                        if (read) continue;
                                        message = read.error().message;
                                        given_up = true;
                                        given_up.notify_all();
                                        return {};
                                      }
                                    },
                                    .pull =
                                        [&](const KeySlice&, auto value, auto update) {
                                          given_up.wait(false);
                                          value[0] += update[0];
                                        }});
  ASSERT_TRUE(engine);
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(message, "key 'bias': no answer from the owners within 20ms");
}

/// Refuses all questions.
class Refuser : public MemberHandle::base {
 public:
  using MemberHandle::base::base;
  MemberHandle::behavior_type make_behavior() override {
    return {[](step_atom) -> Answer<core::Step> { return actor::refusal("no"); },
            [](steps_atom) -> Answer<core::StepsReport> { return actor::refusal("no"); },
            [](read_atom, const core::AskValue&) -> Answer<core::Value> {
              return actor::refusal("member 3 has left the job");
            }};
  }
};

TEST(EngineReads, SayWhyAnOwnerRefuses) {
  Config config{1};
  caf::actor_system system{config};
  const auto model = system.spawn<Refuser>();
  detail::Fetcher fetcher{std::chrono::seconds{10}};
  fetcher.attach(model, system);
  const auto values = fetcher.read(std::vector<core::RangeRows>{{0, nullptr}});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().message, "member 3 has left the job");
}

}  // namespace
}  // namespace starling::actor
