/// Tests that both levels of the simulator agree on the time that exchanges take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/engine/work/gradients.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
/// 50 kB, which one message holds.
constexpr std::size_t parameters = 12500;

/// A job of zeros that no update changes.
Job still_job() {
  core::Layout layout;
  layout.parameters = {{.name = "still", .shape = {parameters}}};
  layout.offsets = {0};
  layout.ranges = {{0, parameters, 0, {{0, 0, 0, parameters}}}};
  layout.size = parameters;
  Job job;
  job.initial_states = core::to_ranges<float>(layout, std::vector<float>(parameters));
  job.layout = std::make_shared<const core::Layout>(std::move(layout));
  job.applier = core::merge_applier<float>([](const auto&, auto, auto) {});
  job.compute = [](MemberId, const core::Compute&) {
    core::Update update{.parts = {{0, {}}}, .samples = 1, .loss = 1};
    update.parts[0].values = {core::Buffer::zeros(parameters, sizeof(float)), 0, parameters,
                              nullptr};
    return update;
  };
  return job;
}

struct LevelsOfExchange {
  const char* exchange;
  std::size_t workers;
  const char* barrier;
  Time latency = 500us;
  /// A model takes 2 ms at this bandwidth.
  double bytes_per_second = 25e6;
};

void PrintTo(const LevelsOfExchange& c, std::ostream* out) {
  *out << c.exchange << " " << c.workers << " " << c.barrier << " " << c.latency.count() << " ns "
       << c.bytes_per_second << " B/s";
}

class BothLevelsExchange : public testing::TestWithParam<LevelsOfExchange> {};

/// The time of 40 steps of workers of different speeds differs by less than 4 %: at the protocol
/// level, messages have headers, and sums carry how many samples each worker has added. There, a
/// bandwidth is that of the link between two members; so the two levels agree only if the members
/// send to one other at a time, or if the latency is long. The step level knows no hand-over of
/// weight at the end of a gossip job, which takes up to six latencies.
TEST_P(BothLevelsExchange, TakeAsLong) {
  const auto [exchange, workers, barrier, latency, bytes_per_second] = GetParam();
  StepOptions steps;
  steps.workers = workers;
  steps.barrier = barrier::parse(barrier).value();
  steps.mode = core::Mode::peer;
  steps.recheck = core::default_recheck(steps.mode);
  steps.step_time = Distribution{laws::Constant{4ms}};
  for (std::size_t i = 0; i < workers; ++i)
    steps.slowness.push_back(1 + static_cast<double>(i * 7 % workers) /
                                     static_cast<double>(2 * workers));
  steps.steps_max = 40;
  steps.horizon = 1h;
  steps.exchange = ExchangeStepOptions{.name = exchange,
                                       .bytes = parameters * sizeof(float),
                                       .latency = Distribution{laws::Constant{latency}},
                                       .bytes_per_second = bytes_per_second};
  const StepResult at_steps = simulate(steps);

  ProtocolOptions messages;
  messages.mode = steps.mode;
  messages.exchange = exchange;
  messages.barrier = steps.barrier;
  messages.workers = workers;
  messages.step_time = steps.step_time;
  messages.slowness = steps.slowness;
  messages.steps = 40;
  messages.link = {.latency = steps.exchange->latency, .bytes_per_second = bytes_per_second};
  Protocol protocol{messages, still_job()};
  ASSERT_TRUE(protocol.run()) << protocol.error();
  const auto elapsed = protocol.result().elapsed;
  EXPECT_NEAR(static_cast<double>(at_steps.elapsed.count()) / static_cast<double>(elapsed.count()),
              1, 0.04)
      << "steps " << at_steps.elapsed.count() << " ns, protocol " << elapsed.count() << " ns";
  // Not all of it is computing.
  EXPECT_GT(at_steps.exchange->waiting_share, 0.05);
}

constexpr double fast = 500e6;

INSTANTIATE_TEST_SUITE_P(
    Of, BothLevelsExchange,
    testing::Values(LevelsOfExchange{"allreduce:ring", 8, "bsp"},
                    LevelsOfExchange{"allreduce:ring", 32, "bsp"},
                    LevelsOfExchange{"allreduce:ring,overlap", 16, "bsp"},
                    LevelsOfExchange{"allreduce:tree", 8, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:tree", 24, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:double-tree", 16, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:halving", 16, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:groups:4", 16, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:parts", 16, "bsp", 2ms, fast},
                    LevelsOfExchange{"allreduce:bcube:k=2", 16, "bsp", 2ms, fast},
                    LevelsOfExchange{"average:every=4", 8, "bsp", 2ms, fast},
                    LevelsOfExchange{"gossip:ring", 8, "asp"},
                    LevelsOfExchange{"gossip:exponential", 16, "asp", 2ms, fast},
                    LevelsOfExchange{"gossip:exponential", 64, "asp", 2ms, fast},
                    LevelsOfExchange{"gossip:random,lag=1", 16, "asp", 4ms, fast},
                    LevelsOfExchange{"owners", 8, "asp", 2ms, fast},
                    LevelsOfExchange{"elastic:every=4", 8, "asp", 2ms, fast},
                    LevelsOfExchange{"leader:every=2,group=4", 8, "asp", 2ms, fast}));

}  // namespace
}  // namespace starling::sim
