/// How a worker begins and ends its part of a deal.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "starling/engine/core/worker/worker.hpp"

namespace starling::core {
namespace {

class WorkerDeals : public testing::Test {
 protected:
  enum class Kind { initial, bsp_initial, joiner, bsp_joiner };

  void begin(Step last_step, Kind kind = Kind::initial) {
    WorkerOptions options;
    options.last_step = last_step;
    options.joins = options.awaits_deal = kind == Kind::joiner || kind == Kind::bsp_joiner;
    options.bsp = kind == Kind::bsp_initial || kind == Kind::bsp_joiner;
    options.central = true;
    options.barrier = {barrier::Asp{}};
    options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1});
    worker_.emplace(options);
    run([](Worker& worker, const Context& context) { worker.start(context); });
  }

  template <class Event>
  void run(Event event) {
    effects_.clear();
    event(*worker_, Context{Time{}, random_, effects_});
  }

  /// Makes the step that the worker has begun, up to its Arrived or its end.
  void make_step() {
    const Step step = worker_->step();
    run([&](Worker& worker, const Context& context) {
      worker.on_values(context, step, {});
      worker.on_update(context, step, {});
      worker.on_written(context, step + 1);
    });
  }
  void pass() {
    run([](Worker& worker, const Context& context) {
      worker.on(context, Proceed{worker.step(), worker.step() + 1});
    });
  }

  /// Returns the step that the worker reads for; nullopt if it reads nothing.
  std::optional<Step> reading() const {
    for (const Effect& effect : effects_)
      if (const auto* read = std::get_if<Read>(&effect)) return read->step;
    return std::nullopt;
  }
  /// Returns the part of the work that the worker computes, as "index/count"; "" if it computes
  /// nothing.
  std::string computing() const {
    for (const Effect& effect : effects_)
      if (const auto* compute = std::get_if<Compute>(&effect))
        return std::to_string(compute->share.index) + "/" + std::to_string(compute->share.count);
    return "";
  }
  bool has_ended() const {
    return std::ranges::any_of(
        effects_, [](const Effect& effect) { return std::holds_alternative<Done>(effect); });
  }

  /// A part of `steps` steps.
  static DealPart part_of(std::uint64_t steps) {
    return {.index = 0,
            .count = 1,
            .order = std::make_shared<const models::SampleOrder>(100, 1, 10, 1),
            .steps = steps};
  }

  Random random_{1};
  Effects effects_;
  std::optional<Worker> worker_;
};

TEST_F(WorkerDeals, AWorkerIsHeldBeforeItsNextStepUntilTheDealComes) {
  begin(3);
  EXPECT_EQ(reading(), 0U);
  worker_->hold();
  EXPECT_EQ(worker_->steps_begun(), 1U);
  EXPECT_EQ(worker_->dealt_taken(), 1U);
  make_step();
  pass();
  EXPECT_TRUE(worker_->is_held());
  EXPECT_EQ(reading(), std::nullopt);
  EXPECT_EQ(worker_->steps_begun(), 1U) << "it has begun no other since it was held";
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(5)); });
  EXPECT_EQ(reading(), 1U);
  EXPECT_EQ(worker_->options().last_step, 6U);
  EXPECT_EQ(worker_->dealt_taken(), 1U);
}

/// A deal of work, from whose step `common_first_step` on all workers have new parts.
DealPart part_of_work(std::uint32_t index, std::uint32_t count, Step common_first_step) {
  return {.index = index, .count = count, .common_first_step = common_first_step};
}

/// Another worker has begun the second step when the first deal comes, and the fourth when the
/// second one does.
TEST_F(WorkerDeals, UnderBspWorkIsDividedAnewInAStepThatNobodyHasBegun) {
  begin(9, Kind::bsp_initial);
  std::vector<std::string> computed;
  const auto make_step_and_pass = [&] {
    make_step();
    computed.push_back(computing());
    pass();
  };
  worker_->hold();
  make_step_and_pass();
  run([](Worker& worker, const Context& context) {
    worker.on_workers(
        context, {std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2})});
    worker.on_deal(context, part_of_work(1, 3, 2));
  });
  make_step_and_pass();
  make_step();
  computed.push_back(computing());
  worker_->hold();
  pass();
  EXPECT_TRUE(worker_->is_held());
  run([](Worker& worker, const Context& context) {
    worker.on_deal(context, part_of_work(0, 1, 4));
  });
  make_step_and_pass();
  make_step_and_pass();
  EXPECT_EQ(computed, (std::vector<std::string>{"0/2", "0/2", "1/3", "1/3", "0/1"}));
}

/// Workers may be many steps apart, so none waits with its new part for another one.
TEST_F(WorkerDeals, UnderOtherBarriersAWorkersNextStepHasItsNewPart) {
  begin(9);
  worker_->hold();
  make_step();
  EXPECT_EQ(computing(), "0/2");
  pass();
  run([](Worker& worker, const Context& context) {
    worker.on_deal(context, part_of_work(1, 3, 7));
  });
  make_step();
  EXPECT_EQ(computing(), "1/3");
}

TEST_F(WorkerDeals, ALastStepMayBecomeAnEarlierOneAndTheWorkerGoesOn) {
  begin(1);
  worker_->hold();
  make_step();
  EXPECT_FALSE(has_ended()) << "the deal may give it more steps";
  pass();
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(1)); });
  EXPECT_EQ(reading(), 1U);
  make_step();
  EXPECT_TRUE(has_ended());
}

TEST_F(WorkerDeals, AWorkerWithoutStepsInTheDealEnds) {
  begin(9);
  worker_->hold();
  make_step();
  pass();
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(0)); });
  EXPECT_TRUE(has_ended());
}

TEST_F(WorkerDeals, StepsMaxEndsAWorkerToo) {
  begin(3);
  worker_->hold();
  run([](Worker& worker, const Context& context) {
    DealPart part = part_of(50);
    part.steps_max = 7;
    worker.on_deal(context, part);
  });
  EXPECT_EQ(worker_->options().last_step, 7U);
}

/// The others have more steps than the job's workers had at first.
TEST_F(WorkerDeals, AJoinerBeginsBeyondTheFirstLastStep) {
  begin(100, Kind::joiner);
  EXPECT_EQ(worker_->steps_begun(), std::nullopt);
  run([](Worker& worker, const Context& context) { worker.on(context, Proceed{120, 121}); });
  EXPECT_TRUE(worker_->is_held());
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(30)); });
  EXPECT_EQ(reading(), 120U);
  EXPECT_EQ(worker_->options().last_step, 150U);
}

TEST_F(WorkerDeals, AJoinerThatGetsItsDealFirstBeginsBeyondTheFirstLastStepToo) {
  begin(100, Kind::bsp_joiner);
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(30)); });
  run([](Worker& worker, const Context& context) { worker.on(context, Proceed{120, 121}); });
  run([](Worker& worker, const Context& context) { worker.on_written(context, 121); });
  EXPECT_FALSE(has_ended());
  pass();
  EXPECT_EQ(reading(), 121U);
  EXPECT_EQ(worker_->options().last_step, 151U);
}

TEST_F(WorkerDeals, AJoinerEndsIfAllOthersHaveEnded) {
  begin(100, Kind::joiner);
  run([](Worker& worker, const Context& context) {
    worker.on(context, Proceed{barrier::finished, barrier::finished});
  });
  EXPECT_TRUE(has_ended());
}

TEST_F(WorkerDeals, AJoinerThatEndsAtOnceHasMadeNoStep) {
  begin(barrier::unlimited, Kind::joiner);
  run([](Worker& worker, const Context& context) {
    worker.on(context, Proceed{barrier::finished, barrier::finished});
  });
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(worker_->step(), 0U);
}

/// All workers of the job have died, and no coordinator knows how far they were.
TEST_F(WorkerDeals, AJoinerWithoutOthersGoesOnWhereTheJobWas) {
  WorkerOptions options;
  options.last_step = 20;
  options.central = false;
  options.barrier = {barrier::Asp{}};
  options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0});
  options.joins = options.awaits_deal = true;
  worker_.emplace(options);
  run([](Worker& worker, const Context& context) { worker.start(context); });
  EXPECT_TRUE(worker_->is_held());
  EXPECT_EQ(worker_->steps_begun(), std::nullopt);
  run([](Worker& worker, const Context& context) { worker.on(context, StepQuery{1, 1}); });
  const Message& answer = std::get<Send>(effects_.at(0)).message;
  EXPECT_EQ(std::get<StepAnswer>(answer).step, not_begun);
  run([](Worker& worker, const Context& context) {
    DealPart part;
    part.reached = 14;
    worker.on_deal(context, part);
  });
  EXPECT_EQ(reading(), 14U);
}

TEST_F(WorkerDeals, AWorkerThatStoppedBeforeItsDealCameHasTakenNothingOfIt) {
  begin(9);
  worker_->hold();
  make_step();
  pass();
  run([](Worker& worker, const Context& context) { worker.on(context, Stop{}); });
  EXPECT_EQ(worker_->dealt_taken(), 1U);
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(5)); });
  EXPECT_EQ(worker_->dealt_taken(), 0U);
  run([](Worker& worker, const Context& context) { worker.on_deal(context, std::nullopt); });
  EXPECT_EQ(worker_->dealt_taken(), std::nullopt);
}

TEST_F(WorkerDeals, AHeldWorkerStops) {
  begin(9);
  worker_->hold();
  make_step();
  pass();
  run([](Worker& worker, const Context& context) { worker.on(context, Stop{}); });
  EXPECT_TRUE(has_ended());
}

}  // namespace
}  // namespace starling::core
