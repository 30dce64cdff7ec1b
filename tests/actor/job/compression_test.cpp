/// Jobs whose workers compress their gradients.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

TrainOptions options_for(const std::string& exchange, const std::string& mode,
                         const std::string& barrier, const std::string& compression) {
  TrainOptions options;
  options.job.exchange = exchange;
  options.job.mode = core::parse_mode(mode).value();
  options.job.barrier = barrier::parse(barrier).value();
  options.job.workers = 3;
  options.job.steps = 40;
  options.optimizer = models::Sgd{.lr = 0.2};
  options.batch = 8;
  options.compression = models::parse_compression(compression).value();
  return options;
}

const models::Table& digits() {
  static const models::Table data = load("digits:n=320");
  return data;
}

Result<Outcome> train_softmax(const TrainOptions& options) {
  return std::visit([&](const auto& model) { return train(model, digits(), nullptr, options); },
                    model_for("softmax", digits()));
}

/// Returns the parameters at the end of a job with these options.
std::vector<float> trained(const TrainOptions& options) {
  const Outcome outcome = train_softmax(options).value();
  return std::visit([&](const auto& model) { return parameters_of(model, options, outcome); },
                    model_for("softmax", digits()));
}

/// A threshold of 0 sends each gradient whole, by the code of compressed ones.
TEST(CompressedJob, ThatSendsAllEqualsAnUncompressedOneToTheBit) {
  for (const auto& [exchange, mode] : {std::pair{"owners", "central"}, {"allreduce", "peer"}})
    EXPECT_EQ(trained(options_for(exchange, mode, "bsp", "threshold:t=0")),
              trained(options_for(exchange, mode, "bsp", "none")))
        << exchange;
}

TEST(CompressedJob, GivesAnotherModelIfItSendsLess) {
  for (const char* exchange : {"allreduce", "average:every=4"})
    EXPECT_NE(trained(options_for(exchange, "peer", "bsp", "bf16")),
              trained(options_for(exchange, "peer", "bsp", "none")));
  EXPECT_NE(trained(options_for("owners", "central", "bsp", "topk:share=5%")),
            trained(options_for("owners", "central", "bsp", "none")));
}

TEST(CompressedJob, OfAnUnknownExchangeIsRefused) {
  const auto outcome = train_softmax(options_for("owner", "peer", "asp", "topk:share=5%"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("'owner' is unknown"), std::string::npos)
      << outcome.error().message;
}

/// The exchange and the mode.
class CompressedMatrix : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static void expect_training_or_reason(const TrainOptions& options);
};

void CompressedMatrix::expect_training_or_reason(const TrainOptions& options) {
  TrainOptions whole = options;
  whole.compression = {};
  if (!train_softmax(whole).ok()) {
    EXPECT_FALSE(train_softmax(options).ok());
    return;
  }
  const auto outcome = train_softmax(options);
  const core::ExchangeType& type = core::exchange_type(options.job.exchange);
  const bool rounds = std::holds_alternative<models::Bf16>(options.compression);
  if ((type.content == core::ExchangeContent::models && !(rounds && type.can_round_to_bf16)) ||
      barrier::moves_with_descent(options.job.barrier)) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().message.find("compression " + models::print(options.compression)), 0U)
        << outcome.error().message;
    return;
  }
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(outcome->end, Outcome::End::completed) << outcome->error;
  EXPECT_EQ(outcome->last.updates, 120U);
  TrainOptions untrained = options;
  untrained.job.steps = 0;
  EXPECT_LT(metric(outcome->last.train, "loss"),
            metric(train_softmax(untrained)->last.train, "loss"));
}

TEST_P(CompressedMatrix, TrainsOrIsRefusedWithTheReason) {
  const auto& [exchange, mode] = GetParam();
  for (const std::string barrier :
       {"bsp", "asp", "pssp:s=3,beta=1", "absp", "quorum:q=0.7", "tuned:progress"})
    for (const std::string compression :
         {"topk:share=10%", "threshold:t=0.01", "threshold:t=0.01,signs", "bf16"}) {
      SCOPED_TRACE(barrier + ", " + compression);
      expect_training_or_reason(options_for(exchange, mode, barrier, compression));
    }
}

INSTANTIATE_TEST_SUITE_P(ExchangesAndModes, CompressedMatrix,
                         testing::Combine(testing::Values("owners", "broadcast", "gossip",
                                                          "allreduce", "average:every=9",
                                                          "elastic:every=9", "leader"),
                                          testing::Values("central", "hybrid", "peer")));

}  // namespace
}  // namespace starling::actor
