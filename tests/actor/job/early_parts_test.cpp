/// Jobs whose workers give parts of their updates early.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

/// A model whose gradient is final in its second half first. It counts its steps.
struct HalvesModel {
  using Scalar = float;
  static constexpr bool has_early_parts = true;
  static constexpr std::size_t size = std::size_t{1} << 18U;

  struct Counts {
    /// Steps whose parts may come early, and all others.
    std::atomic<int> with_parts = 0;
    std::atomic<int> whole = 0;
    /// The number of next steps that throw after the second half is final.
    std::atomic<int> throws_left = 0;
  };
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {size}}};
  }
  void initialise(std::span<float> w, Random& random) const {
    for (float& element : w) element = static_cast<float>(random.real());
  }
  double gradient(std::span<const float> w, const models::Table&, models::Batch, std::span<float> g,
                  models::ComputeContext& context) const {
    ++(context.on_final != nullptr ? counts->with_parts : counts->whole);
    std::ranges::copy(w.subspan(size / 2), g.begin() + size / 2);
    if (context.on_final != nullptr) (*context.on_final)(size / 2);
    if (counts->throws_left > 0 && counts->throws_left-- > 0)
      throw std::runtime_error{"not in the mood"};
    std::ranges::copy(w.first(size / 2), g.begin());
    if (context.on_final != nullptr) (*context.on_final)(0);
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const models::Table&, models::Batch,
                           models::ComputeContext&) const {
    return {};
  }
};

class EarlyPartsJob : public testing::Test {
 protected:
  static TrainOptions options_for(const std::string& exchange) {
    TrainOptions options;
    options.job.exchange = exchange;
    options.job.mode = core::Mode::peer;
    options.job.barrier = {barrier::Bsp{}};
    options.job.workers = 3;
    options.job.steps = 6;
    options.optimizer = models::Sgd{.lr = 0.1, .momentum = 0.9};
    options.batch = 8;
    return options;
  }

  /// Returns the parameters at the end of a job with these options.
  static std::vector<float> trained(const TrainOptions& options) {
    static const models::Table data = load("digits:n=320");
    // 3 MiB of parameters.
    return std::visit(
        [&](const auto& model) {
          const Outcome outcome = train(model, data, nullptr, options).value();
          return parameters_of(model, options, outcome);
        },
        model_for("net:layers=dense 640; relu; dense 400; tanh; dense 10", data));
  }
};

TEST_F(EarlyPartsJob, MayThrowAfterItHasGivenParts) {
  const models::Table data = load("linear:d=2,n=60");
  const TrainOptions options = options_for("allreduce:ring,buckets=2");
  std::vector<float> models[2];
  for (const int throws : {0, 2}) {
    const HalvesModel model;
    model.counts->throws_left = throws;
    const Outcome outcome = train(model, data, nullptr, options).value();
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(model.counts->with_parts, 3 * 6 + throws);
    EXPECT_EQ(model.counts->whole, 0);
    models[throws / 2] = parameters_of(model, options, outcome);
  }
  EXPECT_EQ(models[0], models[1]);
}

/// Early parts would undo an injected delay or a straggler's slowdown.
TEST_F(EarlyPartsJob, GivesWholeUpdatesIfTheyAreHeldBack) {
  const models::Table data = load("linear:d=2,n=60");
  const TrainOptions options = options_for("allreduce:ring,buckets=2");
  TrainOptions delayed = options;
  delayed.job.delay = Distribution{laws::Constant{std::chrono::microseconds{1}}};
  const HalvesModel of_delayed;
  (void)train(of_delayed, data, nullptr, delayed).value();
  EXPECT_EQ(of_delayed.counts->with_parts, 0);
  EXPECT_EQ(of_delayed.counts->whole, 3 * 6);

  TrainOptions slowed = options;
  slowed.job.stragglers = {parse_straggler("1:2x").value()};
  const HalvesModel of_slowed;
  (void)train(of_slowed, data, nullptr, slowed).value();
  EXPECT_EQ(of_slowed.counts->with_parts, 2 * 6);
  EXPECT_EQ(of_slowed.counts->whole, 6);
}

/// An injected delay makes workers give whole updates.
TEST_F(EarlyPartsJob, GivesTheSameModelAsWholeUpdatesToTheBit) {
  for (const char* exchange :
       {"allreduce", "allreduce:ring,buckets=5", "allreduce:parts,buckets=5"}) {
    TrainOptions whole = options_for(exchange);
    whole.job.delay = Distribution{laws::Constant{std::chrono::microseconds{1}}};
    EXPECT_EQ(trained(options_for(exchange)), trained(whole)) << exchange;
  }
}

TEST_F(EarlyPartsJob, RefusesAnInvalidExchange) {
  const models::Table data = load("digits:n=20");
  for (const char* exchange : {"allreduce:rign", "allreduce:ring,buckets=0", "allrduce"}) {
    const auto outcome = std::visit(
        [&](const auto& model) { return train(model, data, nullptr, options_for(exchange)); },
        model_for("mlp:784-16-10", data));
    ASSERT_FALSE(outcome.ok()) << exchange;
    EXPECT_NE(outcome.error().message.find("exchange: "), std::string::npos)
        << outcome.error().message;
  }
}

TEST_F(EarlyPartsJob, WithRoundedSumsGivesTheSameModel) {
  TrainOptions early = options_for("allreduce:ring");
  early.compression = models::parse_compression("bf16").value();
  TrainOptions whole = early;
  whole.job.delay = Distribution{laws::Constant{std::chrono::microseconds{1}}};
  EXPECT_EQ(trained(early), trained(whole));
}

TEST_F(EarlyPartsJob, LearnsAsOneSumOfTheWholeUpdateDoes) {
  const auto buckets = trained(options_for("allreduce:ring,buckets=8"));
  const auto one = trained(options_for("allreduce:ring,buckets=1"));
  ASSERT_EQ(buckets.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(buckets[i], one[i], 1e-5) << i;
}

}  // namespace
}  // namespace starling::actor
