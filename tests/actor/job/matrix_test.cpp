// Trains five built-in models by every exchange, in every mode, under every barrier, with 1, 2, 7
// and 16 workers.
// Invalid combinations must be refused with the reason.
#include <gtest/gtest.h>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

struct TrainingCase {
  std::string model;
  models::Table data;
  std::string optimizer;
};

const std::vector<TrainingCase>& training_cases() {
  static const std::vector<TrainingCase> all{
      {"linear", load("linear:d=20,n=320,noise=0.1"), "sgd:lr=0.1"},
      {"softmax", load("digits:n=320"), "sgd:lr=0.05"},
      {"svm", load("digits:n=320"), "sgd:lr=0.1"},
      {"mf:rank=4", load("ratings:users=20,items=16,rank=2,n=640,noise=0.1"), "adam:lr=0.05"},
      {"mlp:784-16-10", load("digits:n=320"), "adam:lr=0.01"},
  };
  return all;
}

/// The exchange, the mode and the barrier.
using Combination = std::tuple<std::string, std::string, std::string>;

class Matrix : public testing::TestWithParam<Combination> {};

TEST_P(Matrix, TrainsOrIsRefusedWithTheReason) {
  const auto& [exchange, mode, barrier] = GetParam();
  for (const std::size_t workers : {1U, 2U, 7U, 16U}) {
    for (const TrainingCase& training_case : training_cases()) {
      SCOPED_TRACE(training_case.model + ", " + std::to_string(workers) + " workers");
      TrainOptions options;
      options.job.exchange = exchange;
      options.job.mode = core::parse_mode(mode).value();
      options.job.barrier = barrier::parse(barrier).value();
      options.job.workers = workers;
      options.job.steps = 24;
      options.optimizer = models::parse_optimizer(training_case.optimizer).value();
      options.batch = 8;

      const auto model = model_for(training_case.model, training_case.data);
      const auto outcome = std::visit(
          [&](const auto& m) { return train(m, training_case.data, &training_case.data, options); },
          model);

      const auto& type = core::exchange_type(exchange);
      const bool is_barrier = type.is_barrier && type.supports(options.job.mode);
      const bool has_other_barrier = is_barrier && (!barrier::is_bsp(options.job.barrier) ||
                                                    barrier::hands_in_early(options.job.barrier));
      const bool has_no_rounds = type.model_lags && barrier::is_bsp(options.job.barrier);
      const bool needs_all_steps =
          mode != "central" && !is_barrier && barrier::needs_every_step(options.job.barrier);
      const bool sample_is_too_large = options.job.barrier.sample.value_or(0) >= workers;
      const bool needs_peers = !type.supports(options.job.mode);
      const bool needs_questions = mode == "central" && barrier::is_weighted(options.job.barrier);
      if (needs_all_steps || sample_is_too_large || needs_peers || needs_questions ||
          has_other_barrier || has_no_rounds) {
        ASSERT_FALSE(outcome.ok());
        EXPECT_NE(
            outcome.error().message.find(needs_peers           ? "does not work in"
                                         : needs_questions     ? "needs workers that ask each other"
                                         : needs_all_steps     ? "needs to see every worker's step"
                                         : sample_is_too_large ? ", but "
                                         : has_other_barrier   ? "wait for each other"
                                                               : "has no rounds"),
            std::string::npos);
        continue;
      }
      ASSERT_TRUE(outcome.ok()) << outcome.error().message;
      EXPECT_EQ(outcome->end, Outcome::End::completed) << outcome->error;
      EXPECT_EQ(outcome->last.updates, workers * 24);
      TrainOptions untrained = options;
      untrained.job.steps = 0;
      const double before =
          metric(train_text(training_case.model, training_case.data, nullptr, untrained).last.train,
                 "loss");
      EXPECT_LT(metric(outcome->last.train, "loss"), before);
      // Workers of `average` do not wait in each step.
      if (const auto bound = barrier::spread_bound(options.job.barrier);
          bound && !options.job.exchange.starts_with("average")) {
        // With overlap, a worker makes a step while the sum of its last one is in flight.
        const bool overlaps = options.job.exchange.ends_with("overlap");
        EXPECT_LE(outcome->last.max_lag, *bound + (overlaps ? 1 : 0));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    BarriersAndModes, Matrix,
    testing::Combine(testing::Values("owners", "broadcast", "gossip", "gossip:random,lag=1",
                                     "allreduce", "allreduce:halving", "allreduce:parts",
                                     "allreduce:ring,overlap", "average:every=9", "elastic:every=9",
                                     "leader:every=3,group=3,global_every=6"),
                     testing::Values("central", "hybrid", "peer"),
                     testing::Values("bsp", "ssp:s=3", "asp", "pbsp:beta=1", "pbsp:beta=4",
                                     "pssp:s=3,beta=1", "pssp:s=3,beta=4", "pbsp:beta=0",
                                     "ssp:s=inf", "pssp:s=3,beta=1,draw=availability",
                                     "pbsp:beta=4,draw=speed", "tuned:waiting=20%",
                                     "tuned:staleness=1", "tuned:progress", "dssp:low=2,high=6",
                                     "ebsp:ahead=4", "absp", "fluent:s=3,p=0.5", "quorum:q=0.7",
                                     "pquorum:q=0.6,beta=4", "pdssp:low=2,high=6,beta=1",
                                     "pdssp:low=2,high=6,cap,beta=4", "pfluent:s=3,p=0.5,beta=1",
                                     "pfluent:s=3,p=0.5,beta=4,draw=speed")));

}  // namespace
}  // namespace starling::actor
