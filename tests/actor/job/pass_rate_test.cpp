// Tests that the draws of a live job pass as often as they should. All workers but one are held at
// fixed steps, so the probability that a draw passes is exactly C(on_pace, beta) / C(others, beta).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <latch>

#include "starling/actor/job/job.hpp"
#include "starling/barrier/sampling.hpp"
#include "tests/barrier/statistics.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t others = 9;
constexpr std::size_t on_pace = 5;
constexpr std::size_t beta = 2;
/// The step at which workers 1 to `on_pace` are held; the laggards are held at step 0.
constexpr core::Step pace = 3;
constexpr std::uint64_t draws_max = 100'000;

/// Worker 0 makes its steps freely. Each other worker is held inside a gradient once it has reached
/// its fixed step.
class IdleTask final : public Task {
 public:
  IdleTask() : layout_(core::make_layout({{.name = "w", .shape = {1}}}, sizeof(float), 1)) {}

  [[nodiscard]] const core::Layout& layout() const override { return layout_; }
  StepResult compute(const StepInput& input, Scratch&) override {
    const core::Step fixed_step = input.worker <= on_pace ? pace : 0;
    if (input.worker > 0 && input.step == fixed_step) {
      all_at_their_steps.count_down();
      released.wait(false);
    }
    // Worker 0 goes beyond the step `pace`, from which draws are counted, only after all others
    // have reached their fixed steps.
    if (input.worker == 0 && input.step == pace) all_at_their_steps.wait();
    return {.update = {.parts = {}, .samples = 1}, .fault = std::nullopt};
  }

  std::latch all_at_their_steps{others};
  std::atomic<bool> released = false;

 private:
  core::Layout layout_;
};

class LivePassRate : public testing::TestWithParam<core::Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, LivePassRate,
                         testing::Values(core::Mode::central, core::Mode::peer),
                         [](const auto& mode) { return core::print(mode.param); });

TEST_P(LivePassRate, IsHypergeometric) {
  auto task = std::make_shared<IdleTask>();
  std::atomic<std::uint64_t> draws = 0;
  std::atomic<std::uint64_t> passes = 0;
  std::stop_source stop;
  const auto passes_if_on_pace = [&](core::Step own, std::span<const core::Step> seen) {
    if (own <= pace) return true;
    EXPECT_EQ(seen.size(), beta);
    const bool pass = std::ranges::all_of(seen, [](core::Step step) { return step >= pace; });
    if (draws < draws_max) {
      ++draws;
      passes += pass ? 1 : 0;
    } else if (!task->released.exchange(true)) {
      stop.request_stop();
      task->released.notify_all();
    }
    return pass;
  };
  JobOptions options;
  options.mode = GetParam();
  options.barrier = barrier::sampled(barrier::Predicate::make("on-pace", passes_if_on_pace), beta);
  options.recheck = barrier::Recheck{.interval = 1us};
  options.workers = others + 1;
  options.compute_threads = others + 1;
  options.stop = stop.get_token();
  options.time = 5min;
  auto buffer = core::Buffer::make<float>(1);
  buffer->as<float>()[0] = 0;
  core::RangeState initial_state;
  initial_state.value = {std::move(buffer), 0, 1, nullptr};
  const auto merge = core::merge_applier<float>([](const auto&, auto, auto) {});
  const auto outcome = run_job(options, task, merge, {initial_state});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_EQ(outcome->end, Outcome::End::stopped) << outcome->error;
  const double expected = barrier::pass_probability(on_pace, others, beta);
  EXPECT_LT(std::abs(deviations(passes, draws, expected)), 5) << passes << " of " << draws;
}

}  // namespace
}  // namespace starling::actor
