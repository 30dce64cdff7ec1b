/// Jobs whose workers give parts of their updates early.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

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
