/// Tests that nobody waits long under absp, that all samples are still taken once and visited
/// often, and that the updates of a round are together the gradient of the samples that were
/// processed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "starling/engine/sim/protocol/learn.hpp"
#include "tests/engine/sim/dynamic/dealt_softmax.hpp"

namespace starling::sim::absp {
namespace {

using namespace std::chrono_literals;
using models::DealtSample;
using namespace dealt;

/// Four workers of which one needs twice as long, with a jitter of 5 %.
LearnOptions options_for(const char* barrier) {
  LearnOptions options;
  options.protocol.mode = core::Mode::central;
  options.protocol.barrier = barrier::parse(barrier).value();
  options.protocol.workers = 4;
  options.protocol.step_time = parse_distribution("gamma:mean=100ms,shape=400").value();
  options.protocol.slowness = {1, 1, 1, 2};
  options.protocol.link.latency = {laws::Constant{100us}};
  options.optimizer = models::Sgd{.lr = 0.1};
  options.batch = 256;
  return options;
}

/// An update of a worker.
struct Handed {
  core::MemberId worker = 0;
  Step step = 0;
  Time at{};
  core::WorkShare share;
  core::Update update;
  std::vector<core::Value> read;
  std::vector<DealtSample> samples;
};

struct JobRecord {
  std::vector<Handed> updates;
  std::map<core::DealNumber, core::Deal> deals;
  ProtocolResult result;
};

JobRecord record_of(LearnOptions options, const std::function<void(Protocol&)>& prepare = {}) {
  if (options.epochs)
    options.protocol.steps = models::steps_max_in(*options.epochs, table().size());
  Protocol protocol{options.protocol, make_job(model(), table(), options, {})};
  JobRecord record;
  protocol.on_update = [&](core::MemberId worker, const core::Compute& compute,
                           const core::Update& update) {
    Handed handed{worker, compute.step, protocol.now(), compute.share, update, compute.values, {}};
    compute.share.order->batch_after(compute.share.index, compute.share.taken.value(),
                                     handed.samples);
    handed.samples.resize(update.samples);
    record.updates.push_back(std::move(handed));
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

TEST(Absp, LetsNobodyWaitForAWorkerThatIsTwiceAsSlow) {
  LearnOptions options = options_for("absp");
  options.protocol.horizon = 60s;
  const JobRecord job = record_of(options);
  EXPECT_LE(job.result.waiting_share, 0.01);
  EXPECT_GT(job.result.updates, 4U * 550);
  EXPECT_LE(job.result.max_lag, 1U);
  std::map<core::MemberId, std::uint64_t> samples;
  for (const Handed& handed : job.updates) samples[handed.worker] += handed.update.samples;
  const double share = static_cast<double>(samples[3]) / static_cast<double>(samples[0]);
  EXPECT_NEAR(share, 0.5, 0.03) << "the weight of a worker follows its samples";

  options = options_for("bsp");
  options.protocol.horizon = 60s;
  const auto bsp = learn(model(), table(), nullptr, options);
  EXPECT_GT(bsp->waiting_share, 0.35);
  EXPECT_EQ(bsp->longest_gap, std::nullopt);
}

TEST(Absp, VisitsEverySampleInABoundedTime) {
  LearnOptions options = options_for("absp");
  options.protocol.horizon = 60s;
  const JobRecord job = record_of(options);
  // The workers together take 3.5 batches in a step, so an epoch takes about 5,120 / 896 = 5.7
  // steps of 100 ms. A sample that is taken at the very beginning of one epoch is taken in the next
  // epoch or, if it was left, soon after its end.
  ASSERT_TRUE(job.result.longest_gap);
  EXPECT_GT(*job.result.longest_gap, 600ms);
  EXPECT_LT(*job.result.longest_gap, 2'000ms);

  std::vector<Time> last(table().size());
  Time longest{};
  for (const Handed& handed : job.updates)
    for (const DealtSample sample : handed.samples) {
      longest = std::max(longest, handed.at - last[sample.sample]);
      last[sample.sample] = handed.at;
    }
  longest = std::max(longest, job.result.elapsed - std::ranges::min(last));
  EXPECT_EQ(job.result.longest_gap, longest);
}

TEST(Absp, TakesEverySampleOnceInSeveralEpochs) {
  LearnOptions options = options_for("absp");
  for (const double epochs : {1.0, 6.0}) {
    options.epochs = epochs;
    const JobRecord job = record_of(options);
    expect_samples_taken_once(job.updates, static_cast<std::uint64_t>(epochs));
    std::size_t taken = 0;
    for (const Handed& handed : job.updates) taken += handed.samples.size();
    EXPECT_EQ(taken, static_cast<std::size_t>(epochs) * table().size()) << "and no others";
    // All workers share the samples that slow ones have left, so these do not end much later.
    EXPECT_LT(job.result.elapsed, (epochs * 5.72 + 3) * 100ms);
    EXPECT_GT(job.deals.size(), 0U);
  }
}

TEST(Absp, GoesOnWithWhatAWorkerHasNotProcessed) {
  LearnOptions options = options_for("absp");
  options.epochs = 4;
  const JobRecord job = record_of(options);
  std::map<std::pair<core::MemberId, const models::SampleOrder*>, std::uint64_t> taken;
  bool any_handed_in = false;
  for (const Handed& handed : job.updates) {
    std::uint64_t& cursor = taken[{handed.worker, handed.share.order.get()}];
    EXPECT_EQ(*handed.share.taken, cursor) << "worker " << handed.worker;
    cursor += handed.update.samples;
    any_handed_in = any_handed_in || handed.update.samples < 200;
  }
  EXPECT_TRUE(any_handed_in);
}

/// Returns the gradient of the mean loss over the samples, at the parameters `w`.
std::vector<double> gradient_of(const std::vector<double>& w,
                                const std::vector<std::uint32_t>& samples) {
  std::vector<double> g(w.size());
  Random random{0};
  models::Arena arena;
  models::ComputeContext context{random, arena};
  (void)model().gradient(std::span<const double>{w}, table(), samples, std::span{g}, context);
  return g;
}

TEST(Absp, AddsUpToTheGradientOfTheUnionOfTheSamples) {
  LearnOptions options = options_for("absp");
  options.epochs = 3;
  const JobRecord job = record_of(options);
  std::map<Step, std::vector<const Handed*>> rounds;
  for (const Handed& handed : job.updates) rounds[handed.step].push_back(&handed);
  std::size_t partial = 0;
  for (const auto& [step, updates] : rounds) {
    const std::size_t size = model().parameters().front().size() + model().parameters()[1].size();
    std::vector<double> sum(size);
    std::vector<double> w(size);
    std::vector<std::uint32_t> all;
    for (const Handed* handed : updates) {
      for (const DealtSample sample : handed->samples) all.push_back(sample.sample);
      partial += handed->update.samples % 256 == 0 ? 0 : 1;
      for (const core::Update::Part& part : handed->update.parts) {
        const auto values = part.values.as<double>();
        for (std::size_t i = 0; i < values.size(); ++i)
          sum[part.values.offset + i] += values[i] * handed->update.samples;
      }
    }
    std::size_t at = 0;
    for (const core::Value& value : updates.front()->read)
      for (const double element : value.value.as<double>()) w[at++] = element;
    ASSERT_EQ(at, w.size());
    const auto expected = gradient_of(w, all);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_NEAR(sum[i] / static_cast<double>(all.size()), expected[i], 1e-9) << "round " << step;
  }
  EXPECT_GT(partial, 10U);
}

TEST(Absp, LosesNoMoreThanTheUpdateInFlightOfAWorkerThatDies) {
  LearnOptions options = options_for("absp");
  options.protocol.shards = 3;
  options.protocol.channels = true;
  options.epochs = 5;
  for (const Time at : {430ms, 777ms, 1'250ms}) {
    const JobRecord job = record_of(options, [&](Protocol& protocol) { protocol.die(1, at); });
    // The update that it was computing is in no record, or in one that no owner holds.
    expect_samples_taken_once(job.updates, 5, 256);
  }
}

TEST(Absp, RefusesJobsWhoseBatchesCannotBeDivided) {
  LearnOptions options = options_for("absp");
  options.epochs = 1;
  options.dynamic_batches = true;
  EXPECT_EQ(learn(model(), table(), nullptr, options).error().message,
            "barrier absp: hands in a part of a batch, but dynamic batches already give slow "
            "workers small batches; valid: a batch of one size, as --batch 64, or barrier bsp");
  std::vector<models::Parameter> parameters{{.name = "w"}, {.name = "mean", .trained = false}};
  EXPECT_TRUE(core::check_hand_ins({barrier::Bsp{}}, false, parameters));
  EXPECT_EQ(core::check_hand_ins({barrier::Absp{}}, false, parameters).error().message,
            "barrier absp: the model's 'mean' follows from a whole batch, as in batch "
            "normalisation, so that no part of a batch can be handed in; valid: bsp, or a model "
            "without it");
}

}  // namespace
}  // namespace starling::sim::absp
