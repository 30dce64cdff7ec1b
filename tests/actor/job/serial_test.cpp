// Tests that a central bsp job with any number of workers equals a serial loop over the union of
// their batches up to rounding, and that two runs give the same bits.
#include <gtest/gtest.h>

#include "starling/models/tabular/perceptron.hpp"
#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

constexpr core::Step steps = 100;
constexpr std::size_t union_batch = 64;

TrainOptions options_for(std::size_t workers) {
  TrainOptions options;
  options.job.mode = core::Mode::central;
  options.job.barrier = {barrier::Bsp{}};
  options.job.workers = workers;
  options.job.shards = workers > 4 ? 3 : 1;
  options.job.steps = steps;
  options.optimizer = models::Sgd{.lr = 0.1, .momentum = 0.9};
  options.l2 = 1e-4;
  options.batch = union_batch / workers;
  return options;
}

/// Trains in a plain loop, without actors and ranges.
template <class M>
std::vector<typename M::Scalar> train_serially(const M& model, const models::Table& data,
                                               const TrainOptions& options) {
  using T = typename M::Scalar;
  const auto layout = core::make_layout(model.parameters(), sizeof(T), 1);
  std::vector<T> w(layout.size);
  Random random = Random::stream(options.job.seed, initial_stream);
  model.initialise(std::span<T>{w}, random);
  std::vector<T> slots(models::slot_count(options.optimizer) * w.size());
  const models::SampleOrder order{data.size(), 1, union_batch, options.job.seed};
  models::Arena arena;
  std::vector<std::uint32_t> batch;
  for (core::Step step = 0; step < steps; ++step) {
    order.batch(0, step, batch);
    std::vector<T> g(w.size());
    arena.reset();
    models::ComputeContext context{.random = random, .arena = arena};
    model.gradient(std::span<const T>{w}, data, batch, std::span<T>{g}, context);
    std::size_t offset = 0;
    for (const auto& parameter : layout.parameters) {
      const std::size_t size = parameter.size();
      models::apply<T>(options.optimizer, std::span{w}.subspan(offset, size),
                       std::span{g}.subspan(offset, size), std::span{slots}.subspan(offset),
                       w.size(), {.l2 = parameter.decay ? options.l2 : 0, .t = step + 1});
      offset += size;
    }
  }
  return w;
}

template <class T>
double relative_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

template <class T>
class Serial : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Serial, Scalars);

TYPED_TEST(Serial, AnyNumberOfWorkersEqualsOneMachineOnTheUnionBatch) {
  using T = TypeParam;
  const models::Table data = load("digits:n=640");
  for (const char* text : {"softmax", "mlp:784-32-10"}) {
    const auto any = models::parse_model<T>(text, data).value();
    std::visit(
        [&](const auto& model) {
          const auto expected = train_serially(model, data, options_for(1));
          for (const std::size_t workers : {1U, 2U, 4U, 8U}) {
            SCOPED_TRACE(std::string{text} + ", " + std::to_string(workers) + " workers");
            const TrainOptions options = options_for(workers);
            const auto run = [&] {
              const Outcome outcome = train(model, data, nullptr, options).value();
              EXPECT_EQ(outcome.last.updates, steps * workers);
              return parameters_of(model, options, outcome);
            };
            const auto once = run();
            EXPECT_LE(relative_difference(once, expected), sizeof(T) == 4 ? 1e-5 : 1e-12);
            EXPECT_EQ(once, run()) << "the same seed must give the same bits";
          }
        },
        any);
  }
}

}  // namespace
}  // namespace starling::actor
