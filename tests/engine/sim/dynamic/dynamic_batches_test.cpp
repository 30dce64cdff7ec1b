/// Tests that the workers' batches follow their speeds, that all samples are still taken once, and
/// that the updates of a step are together the gradient of the union of the batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "starling/engine/sim/protocol/learn.hpp"
#include "starling/models/batch_sizes.hpp"
#include "tests/engine/sim/dynamic/dealt_softmax.hpp"

namespace starling::sim::dynamic {
namespace {

using namespace std::chrono_literals;
using core::Mode;
using namespace dealt;
using Sizes = std::vector<std::uint64_t>;

constexpr std::uint64_t total = 512;

LearnOptions options_for(Mode mode, const char* barrier) {
  LearnOptions options;
  options.protocol.mode = mode;
  options.protocol.barrier = barrier::parse(barrier).value();
  options.protocol.workers = 4;
  options.protocol.step_time = {laws::Constant{100ms}};
  options.protocol.slowness = {1, 1, 1, 2};
  options.protocol.link.latency = {laws::Constant{100us}};
  options.optimizer = models::Sgd{.lr = 0.1};
  options.batch = total;
  options.dynamic_batches = true;
  return options;
}

/// One computation of a worker.
struct Computed {
  core::MemberId worker = 0;
  Step step = 0;
  Time at{};
  std::vector<models::DealtSample> samples;
};

/// A simulated job, and what its members did.
struct JobRecord {
  std::vector<Computed> computed;
  /// The deals that the dealer has sent, by number.
  std::map<core::DealNumber, core::Deal> deals;
  ProtocolResult result;

  /// Returns the sizes of the last deal in which `workers` workers have a part: when the first ones
  /// have ended, those that are left may share their samples.
  [[nodiscard]] Sizes last_sizes(std::size_t workers) const {
    Sizes sizes;
    for (const auto& [number, deal] : deals)
      if (deal.workers.size() == workers) sizes = core::sizes_of(deal);
    return sizes;
  }
};

JobRecord record_of(LearnOptions options, double epochs,
                    const std::function<void(Protocol&)>& prepare = {}) {
  options.epochs = epochs;
  options.protocol.steps = models::first_order(table().size(), options.protocol.workers,
                                               options.batch, options.dynamic_batches, 0)
                               .steps_in_epochs(epochs);
  Protocol protocol{options.protocol, make_job(model(), table(), options, {})};
  JobRecord record;
  protocol.on_compute = [&](core::MemberId worker, const core::Compute& compute) {
    Computed computed{worker, compute.step, protocol.now(), {}};
    const core::WorkShare& share = compute.share;
    share.order->batch(share.index, compute.step - share.first_step, computed.samples);
    record.computed.push_back(std::move(computed));
  };
  protocol.on_send = [&](core::MemberId, core::MemberId, const core::PeerMessage& message) {
    if (const auto* next = std::get_if<core::NewDeal>(&message))
      record.deals[next->deal.number] = next->deal;
  };
  if (prepare) prepare(protocol);
  EXPECT_TRUE(protocol.run()) << protocol.error();
  record.result = protocol.result();
  return record;
}

void expect_exact_sums(const JobRecord& run) {
  for (const auto& [number, deal] : run.deals) {
    const Sizes sizes = core::sizes_of(deal);
    if (sizes.empty()) continue;  // all workers have ended
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), total);
    EXPECT_GE(std::ranges::min(sizes), 1U);
  }
}

Sizes sorted(Sizes sizes) {
  std::ranges::sort(sizes, std::greater<>{});
  return sizes;
}

TEST(DynamicBatches, FollowTheSpeedsWithinThreeEpochs) {
  const LearnOptions options = options_for(Mode::central, "bsp");
  const JobRecord adapted = record_of(options, 3);
  EXPECT_EQ(sorted(adapted.last_sizes(4)), (Sizes{147, 146, 146, 73}));
  EXPECT_EQ(adapted.last_sizes(4).at(3), 73U) << "worker 3 is the slow one";
}

/// Returns the time from the end of epoch 4 to the end of epoch 12.
Time time_of_eight_epochs(const LearnOptions& options) {
  const auto elapsed = [&](double epochs) {
    auto result = learn(model(), table(), nullptr, [&] {
      LearnOptions limited = options;
      limited.epochs = epochs;
      return limited;
    }());
    EXPECT_TRUE(result.ok() && result->error.empty());
    return result->elapsed;
  };
  return elapsed(12) - elapsed(4);
}

TEST(DynamicBatches, MakeAnEpochFortyPercentShorter) {
  LearnOptions options = options_for(Mode::central, "bsp");
  const Time dynamic = time_of_eight_epochs(options);
  options.dynamic_batches = false;
  options.batch = total / options.protocol.workers;
  const Time equal = time_of_eight_epochs(options);
  const double saved =
      1 - static_cast<double>(dynamic.count()) / static_cast<double>(equal.count());
  EXPECT_GT(saved, 0.40);
  EXPECT_LT(saved, 0.45);
}

struct Case {
  Mode mode;
  const char* barrier;
};

class DynamicBatchesEverywhere : public testing::TestWithParam<Case> {};

TEST_P(DynamicBatchesEverywhere, TakeEverySampleOnceAndFollowTheSpeeds) {
  const LearnOptions options = options_for(GetParam().mode, GetParam().barrier);
  const JobRecord all = record_of(options, 6);
  expect_samples_taken_once(all.computed, 6);
  expect_exact_sums(all);
  const Sizes sizes = all.last_sizes(4);
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_NEAR(static_cast<double>(sizes[3]), 73, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, DynamicBatchesEverywhere,
    testing::Values(Case{Mode::central, "bsp"}, Case{Mode::central, "ssp:s=3"},
                    Case{Mode::central, "asp"}, Case{Mode::central, "pssp:s=2,beta=2"},
                    Case{Mode::hybrid, "asp"}, Case{Mode::hybrid, "pbsp:beta=2"},
                    Case{Mode::peer, "pssp:s=4,beta=2"}, Case{Mode::peer, "asp"}));

TEST(DynamicBatches, FollowAChangeOfSpeedWithinTwoEpochs) {
  LearnOptions options = options_for(Mode::central, "bsp");
  options.protocol.slowness = {};
  Time changed_at = Time::max();
  const Protocol* running = nullptr;
  options.protocol.step_time_of = [&](core::MemberId worker, Step) -> Time {
    return worker == 1 && running->now() >= changed_at ? 300ms : 100ms;
  };
  // Ten steps of 100 ms are one epoch: the change comes in the middle of the fourth.
  changed_at = 3'500ms;
  const JobRecord followed =
      record_of(options, 6, [&](Protocol& protocol) { running = &protocol; });
  expect_samples_taken_once(followed.computed, 6);
  // The first step of the job's sixth epoch: two epochs after the change.
  const auto later = std::ranges::find_if(followed.computed, [&](const Computed& computed) {
    return computed.worker == 1 && !computed.samples.empty() &&
           computed.samples.front().epoch == 5 && computed.samples.size() > 1;
  });
  ASSERT_NE(later, followed.computed.end());
  EXPECT_NEAR(static_cast<double>(later->samples.size()), 512 * (1 / 3.0) / (3 + 1 / 3.0), 4);
}

/// Repeats a job under bsp on one machine, round by round, on the union of the batches of each.
TEST(DynamicBatches, TrainLikeOneMachineOnTheUnionOfTheBatches) {
  for (const auto& optimizer : {models::Optimizer{models::Sgd{.lr = 0.1}},
                                models::Optimizer{models::Sgd{.lr = 0.1, .momentum = 0.9}}}) {
    LearnOptions options = options_for(Mode::central, "bsp");
    options.optimizer = optimizer;
    const JobRecord job = record_of(options, 5);
    ASSERT_GE(job.deals.size(), 3U);
    std::map<Step, std::vector<std::uint32_t>> rounds;
    for (const Computed& computed : job.computed)
      for (const models::DealtSample dealt : computed.samples)
        rounds[computed.step].push_back(dealt.sample);
    const auto layout = core::make_layout(model().parameters(), sizeof(double), 1);
    std::vector<double> w(layout.size);
    Random random = Random::stream(options.protocol.seed, core::initial_stream);
    model().initialise(std::span{w}, random);
    std::vector<double> slots(models::slot_count(optimizer) * w.size());
    models::Arena arena;
    std::uint64_t t = 0;
    for (const auto& [step, samples] : rounds) {
      std::vector<double> g(w.size());
      models::ComputeContext context{random, arena};
      model().gradient(std::span<const double>{w}, table(), samples, std::span{g}, context);
      models::apply<double>(optimizer, std::span{w}, std::span{g}, std::span{slots}, w.size(),
                            {.rate_scale = 1, .l2 = 0, .t = ++t});
    }
    const auto trained = core::to_vector<double>(
        core::make_layout(model().parameters(), sizeof(double), 1), job.result.model);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      difference += std::pow(trained[i] - w[i], 2);
      norm += std::pow(w[i], 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-6);
  }
}

/// Without rounds, each update has the weight b_i / total.
TEST(DynamicBatches, WeightsOfAStepAddUpToTheGradientOfTheUnion) {
  const Sizes sizes{147, 146, 146, 73};
  const models::SampleOrder order{table().size(), sizes, 1};
  const models::SampleOrder lone{table().size(), 1, total, 1};
  const auto applier = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .batch = total, .is_batch_of_all = true});
  std::vector<double> w(core::make_layout(model().parameters(), sizeof(double), 1).size);
  Random random{3};
  for (double& value : w) value = static_cast<double>(random.below(1'000)) / 1'000 - 0.5;
  models::Arena arena;
  const auto gradient = [&](const std::vector<std::uint32_t>& samples) {
    std::vector<double> g(w.size());
    models::ComputeContext context{random, arena};
    model().gradient(std::span<const double>{w}, table(), samples, std::span{g}, context);
    return g;
  };
  std::vector<std::uint32_t> samples;
  std::vector<double> sum(w.size());
  for (std::uint64_t worker = 0; worker < sizes.size(); ++worker) {
    order.batch(worker, 0, samples);
    const auto g = gradient(samples);
    const double weight = applier->weight(static_cast<std::uint32_t>(samples.size()), sizes.size());
    for (std::size_t i = 0; i < g.size(); ++i) sum[i] += weight * g[i];
  }
  lone.batch(0, 0, samples);
  const auto all = gradient(samples);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(sum[i], all[i], 1e-6 * std::abs(all[i]));
}

TEST(DynamicBatches, AreDealtAnewToThoseThatAreLeftWhenAWorkerDies) {
  for (const auto& [mode, barrier] : {Case{Mode::peer, "pssp:s=4,beta=2"},
                                      Case{Mode::central, "bsp"}, Case{Mode::hybrid, "asp"}}) {
    LearnOptions options = options_for(mode, barrier);
    options.protocol.channels = true;
    options.protocol.shards = 2;
    JobRecord left = record_of(options, 6, [](Protocol& protocol) { protocol.die(2, 2'530ms); });
    expect_exact_sums(left);
    // Others take the samples of the step that worker 2 was computing, unless its update had come
    // to an owner.
    const auto last = std::ranges::find(left.computed.rbegin(), left.computed.rend(),
                                        core::MemberId{2}, &Computed::worker);
    ASSERT_NE(last, left.computed.rend());
    const std::size_t lost_max = std::exchange(last->samples, {}).size();
    expect_samples_taken_once(left.computed, 6, lost_max);
    EXPECT_EQ(left.last_sizes(3).size(), 3U);
  }
}

TEST(DynamicBatches, RefuseATotalBelowTheNumberOfWorkers) {
  LearnOptions options = options_for(Mode::central, "bsp");
  options.epochs = 1;
  options.batch = 3;
  const auto refused = learn(model(), table(), nullptr, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("dynamic:total=3 is below the number of workers, 4"),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace starling::sim::dynamic
