/// Tests that P workers under bsp, with owners or an all-reduce, compute the same as one machine on
/// the union of their batches.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/sample_order.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "starling/models/tabular/perceptron.hpp"
#include "tests/models/model_data.hpp"

namespace starling::sim {
namespace {

using core::Buffer;
using core::Compute;
using core::Layout;
using core::Range;
using core::RangeId;
using core::Update;
using models::SampleOrder;
using models::Table;

/// The optimiser, the learning rate schedule and the weight decay.
struct TrainingOptions {
  models::Optimizer optimizer = models::Sgd{.lr = 0.1};
  models::Schedule schedule;
  double l2 = 0;
};

constexpr Step steps = 100;
constexpr std::uint64_t order_seed = 11;
/// The number of samples in the batches of all workers together. The 197 rows of the table are not
/// a multiple of it, so the last batches of an epoch are smaller.
constexpr std::size_t union_batch = 24;

const Table& table() {
  static const Table rows = models::dense_table(197, 20, 4);
  return rows;
}

template <class M>
M make(const char* spec) {
  return M::parse(Spec::parse(spec).value(), table()).value();
}

template <class M>
std::vector<typename M::Scalar> initial(const M& model) {
  std::vector<typename M::Scalar> w(models::total_size(model.parameters()));
  Random random{5};
  model.initialise(std::span{w}, random);
  return w;
}

template <class M>
std::vector<typename M::Scalar> gradient(const M& model, std::span<const typename M::Scalar> w,
                                         models::Batch batch) {
  std::vector<typename M::Scalar> g(w.size());
  if (batch.empty()) return g;
  Random random{0};
  models::Arena arena;
  models::ComputeContext context{random, arena};
  model.gradient(w, table(), batch, std::span{g}, context);
  return g;
}

/// Trains the model on one machine, without a job.
template <class M>
std::vector<typename M::Scalar> train_serially(const M& model, const TrainingOptions& training) {
  using T = typename M::Scalar;
  auto w = initial(model);
  std::vector<T> slots(models::slot_count(training.optimizer) * w.size());
  const SampleOrder order{table().size(), 1, union_batch, order_seed};
  std::vector<std::uint32_t> batch;
  std::uint64_t samples_seen = 0;
  for (Step step = 0; step < steps; ++step) {
    order.batch(0, step, batch);
    const auto g = gradient(model, std::span<const T>{w}, batch);
    std::size_t offset = 0;
    for (const auto& parameter : model.parameters()) {
      const auto state = slots.empty() ? std::span<T>{} : std::span{slots}.subspan(offset);
      models::apply<T>(training.optimizer, std::span{w}.subspan(offset, parameter.size()),
                       std::span{g}.subspan(offset, parameter.size()), state, w.size(),
                       {.rate_scale = models::factor(training.schedule, samples_seen),
                        .l2 = parameter.decay ? training.l2 : 0,
                        .t = step + 1});
      offset += parameter.size();
    }
    samples_seen += batch.size();
  }
  return w;
}

/// Returns the parameter vector of the states of all ranges.
template <class T, class States>
std::vector<T> gather(const Layout& layout, const States& states) {
  std::vector<T> w(layout.size);
  for (const auto& state : states)
    std::ranges::copy(state.value.template as<T>(),
                      w.begin() + static_cast<std::ptrdiff_t>(layout.ranges[state.range].offset));
  return w;
}

/// Trains the model in a simulated job under bsp, over a network that delays and duplicates
/// packets.
template <class M>
std::vector<typename M::Scalar> train_as_job(const M& model, const TrainingOptions& training,
                                             std::size_t workers, std::uint64_t network_seed,
                                             const std::string& exchange = "owners") {
  using T = typename M::Scalar;
  const std::size_t batch = union_batch / workers;
  const auto layout =
      std::make_shared<const Layout>(core::make_layout(model.parameters(), sizeof(T), 3));
  Job job;
  job.layout = layout;
  job.applier =
      core::gradient_applier<T>({training.optimizer, training.schedule, training.l2, batch});
  const auto w = initial(model);
  for (RangeId r = 0; r < layout->ranges.size(); ++r) {
    const Range& range = layout->ranges[r];
    auto buffer = Buffer::make<T>(range.count);
    std::ranges::copy(std::span{w}.subspan(range.offset, range.count),
                      buffer->template as<T>().begin());
    job.initial_states.push_back({.range = r,
                                  .value = {std::move(buffer), 0, range.count, nullptr},
                                  .slots = {},
                                  .ledger = {}});
  }
  const SampleOrder order{table().size(), workers, batch, order_seed};
  job.compute = [&, order](MemberId worker, const Compute& compute) {
    std::vector<std::uint32_t> samples;
    order.batch(worker, compute.step, samples);
    const auto read = gather<T>(*layout, compute.values);
    const auto g = gradient(model, std::span<const T>{read}, samples);
    auto buffer = Buffer::make<T>(g.size());
    std::ranges::copy(g, buffer->template as<T>().begin());
    Update update{.parts = {}, .samples = static_cast<std::uint32_t>(samples.size())};
    for (RangeId r = 0; r < layout->ranges.size(); ++r)
      update.parts.push_back(
          {r, {buffer, layout->ranges[r].offset, layout->ranges[r].count, nullptr}});
    return update;
  };
  ProtocolOptions options;
  options.barrier = {barrier::Bsp{}};
  options.workers = workers;
  options.shards = 2;
  options.exchange = exchange;
  if (exchange != "owners") options.mode = core::Mode::peer;
  options.steps = steps;
  options.step_time = {laws::Exponential{std::chrono::milliseconds{5}}};
  options.slowness.assign(workers, 1);
  options.slowness[0] = 3;
  options.link = {.latency = {laws::Uniform{std::chrono::microseconds{1500}}}, .duplication = 0.1};
  options.seed = network_seed;
  Protocol protocol{options, job};
  EXPECT_TRUE(protocol.run());
  return gather<T>(*layout, protocol.model());
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

/// Expects that jobs of 1 to 8 workers give the parameters of one machine, up to rounding.
template <class M>
void expect_same_as_one_machine(const char* spec, const TrainingOptions& training) {
  const double tolerance = sizeof(typename M::Scalar) == 4 ? 1e-5 : 1e-12;
  const M model = make<M>(spec);
  const auto serial = train_serially(model, training);
  EXPECT_GT(relative_difference(initial(model), serial), 0.01) << "nothing was learned";
  for (const std::size_t workers : {1U, 2U, 4U, 8U}) {
    const auto w = train_as_job(model, training, workers, 1);
    EXPECT_LE(relative_difference(w, serial), tolerance) << spec << ", " << workers << " workers";
    for (const char* exchange : {"allreduce", "allreduce:ring"}) {
      const auto sums = train_as_job(model, training, workers, 1, exchange);
      EXPECT_LE(relative_difference(sums, serial), tolerance)
          << spec << ", " << exchange << ", " << workers << " workers";
    }
  }
}

const TrainingOptions plain;
const TrainingOptions with_momentum_and_decay{
    .optimizer = models::Sgd{.lr = 0.1, .momentum = 0.9},
    .schedule = models::StepRate{.every = 700, .gamma = 0.5},
    .l2 = 1e-3};

TEST(UnionBatch, TrainsSoftmaxLikeOneMachine) {
  expect_same_as_one_machine<models::Softmax<float>>("softmax", plain);
  expect_same_as_one_machine<models::Softmax<double>>("softmax", plain);
}

TEST(UnionBatch, TrainsAPerceptronLikeOneMachine) {
  expect_same_as_one_machine<models::Perceptron<float>>("mlp:20-60-4,activation=tanh", plain);
  expect_same_as_one_machine<models::Perceptron<double>>("mlp:20-60-4,activation=tanh", plain);
}

TEST(UnionBatch, KeepsMomentumScheduleAndDecayLikeOneMachine) {
  expect_same_as_one_machine<models::Softmax<float>>("softmax", with_momentum_and_decay);
  expect_same_as_one_machine<models::Perceptron<double>>("mlp:20-60-4,activation=tanh",
                                                         with_momentum_and_decay);
}

TEST(UnionBatch, RepeatsBitwiseOverAnyNetwork) {
  const auto model = make<models::Perceptron<float>>("mlp:20-60-4");
  const auto once = train_as_job(model, with_momentum_and_decay, 4, 1);
  EXPECT_EQ(train_as_job(model, with_momentum_and_decay, 4, 1), once);
  EXPECT_EQ(train_as_job(model, with_momentum_and_decay, 4, 99), once);
  const auto sums = train_as_job(model, with_momentum_and_decay, 4, 1, "allreduce:tree");
  EXPECT_EQ(train_as_job(model, with_momentum_and_decay, 4, 99, "allreduce:tree"), sums);
}

/// Local SGD with a mean after each step is SGD with the batch of all.
TEST(UnionBatch, MeansAfterEachStepOfPlainSgdAreLikeOneMachine) {
  const TrainingOptions plain_with_schedule{
      .optimizer = models::Sgd{.lr = 0.1},
      .schedule = models::StepRate{.every = 700, .gamma = 0.5},
      .l2 = 1e-3};
  const auto model = make<models::Perceptron<double>>("mlp:20-60-4,activation=tanh");
  const auto serial = train_serially(model, plain_with_schedule);
  for (const std::size_t workers : {1U, 2U, 4U, 8U}) {
    const auto w = train_as_job(model, plain_with_schedule, workers, 1, "average:every=1");
    EXPECT_LE(relative_difference(w, serial), 1e-12) << workers << " workers";
    EXPECT_EQ(train_as_job(model, plain_with_schedule, workers, 99, "average:every=1"), w);
  }
  EXPECT_GT(relative_difference(train_as_job(model, plain_with_schedule, 4, 1, "average:every=4"),
                                serial),
            1e-6)
      << "means after more steps differ";
}

}  // namespace
}  // namespace starling::sim
