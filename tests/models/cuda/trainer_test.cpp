// Compares training on a device with the CPU's gradients and optimisers.
#include "starling/models/cuda/training/trainer.hpp"

#include "tests/models/cuda/device.hpp"

namespace starling::models::cuda {
namespace {

/// Trains on the CPU as a job with one worker does: adds the gradients of untrained parameters to
/// them, and applies the optimiser to the others.
class CpuTrainer {
 public:
  CpuTrainer(Net<float> net, const TrainerOptions& options, std::vector<float> w)
      : net_(std::move(net)),
        options_(options),
        w_(std::move(w)),
        state_(slot_count(options_.optimizer) * w_.size()) {}

  void step(const Table& data, Batch batch, double rate_scale) {
    Gradient gradient = gradient_of(net_, w_, data, batch);
    loss_ += gradient.loss * static_cast<double>(batch.size());
    clip(gradient.g);
    ++steps_;
    std::size_t offset = 0;
    for (const Parameter& p : net_.parameters()) {
      const std::span<float> w = std::span{w_}.subspan(offset, p.size());
      const std::span<float> g = std::span{gradient.g}.subspan(offset, p.size());
      if (p.trained) {
        const ApplyOptions apply_options{
            .rate_scale = rate_scale, .l2 = p.decay ? options_.l2 : 0, .t = steps_};
        const std::span<float> state =
            state_.empty() ? std::span<float>{} : std::span{state_}.subspan(offset);
        apply<float>(options_.optimizer, w, g, state, w_.size(), apply_options);
      } else {
        for (std::size_t i = 0; i < w.size(); ++i) w[i] += g[i];
      }
      offset += p.size();
    }
  }

  /// Clips the gradients of all trained parameters as one vector.
  void clip(std::span<float> g) const {
    std::vector<std::span<float>> trained;
    for (const Parameter& p : net_.parameters()) {
      if (p.trained) trained.push_back(g.first(p.size()));
      g = g.subspan(p.size());
    }
    apply<float>(options_.clip, trained);
  }

  [[nodiscard]] const std::vector<float>& w() const { return w_; }
  [[nodiscard]] double loss() const { return loss_; }

 private:
  Net<float> net_;
  TrainerOptions options_;
  std::vector<float> w_;
  std::vector<float> state_;
  std::uint64_t steps_ = 0;
  double loss_ = 0;
};

struct TrainerCase {
  std::string optimizer;
  std::string clip = "none";
};

void PrintTo(const TrainerCase& given, std::ostream* out) {
  *out << given.optimizer << " " << given.clip;
}

class Trainers : public testing::TestWithParam<TrainerCase> {};

TEST_P(Trainers, EqualTheCpu) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(400, 75, 10);
  // The net has no bias before batch normalisation: its gradient would be only rounding errors,
  // which an optimiser that divides by the gradient's size turns into full steps.
  const Net<float> net = net_of(
      "net:input=5x5x3,layers=conv2d 8 kernel=3 padding=1 bias=0; batch-norm; tanh; avg-pool 2; "
      "flatten; dense 10",
      data);
  const TrainerOptions options{.optimizer = parse_optimizer(GetParam().optimizer).value(),
                               .l2 = 0.01,
                               .clip = parse_clip(GetParam().clip).value()};
  const auto w = initial_parameters(net);
  CpuTrainer cpu{net, options, w};
  auto trainer = Trainer::make(net, 0, 40, w, options);
  ASSERT_TRUE(trainer) << trainer.error().message;
  const auto rows = all_rows(data);
  for (std::size_t step = 0; step < 20; ++step) {
    // Every tenth batch is shorter.
    const Batch batch = Batch{rows}.subspan(step % 10 * 40, step % 10 == 9 ? 17 : 40);
    const double rate_scale = 1.0 / static_cast<double>(1 + step);
    cpu.step(data, batch, rate_scale);
    const auto stepped = trainer->step(data, batch, step, rate_scale);
    ASSERT_TRUE(stepped) << stepped.error().message;
  }
  const auto sums = trainer->finish();
  ASSERT_TRUE(sums) << sums.error().message;
  EXPECT_NEAR(sums->loss, cpu.loss(), 1e-3 * cpu.loss());
  std::vector<float> actual(w.size());
  ASSERT_TRUE(trainer->read(actual));
  EXPECT_LT(relative_error(actual, cpu.w()), 1e-3);
  EXPECT_GT(relative_error(actual, w), 1e-2) << "nothing was learned";
  EXPECT_GE(trainer->recorded(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Trainers,
                         testing::Values(TrainerCase{"sgd:lr=0.1"},
                                         TrainerCase{"sgd:lr=0.1,momentum=0.9"},
                                         TrainerCase{"sgd:lr=0.1,momentum=0.9,nesterov"},
                                         TrainerCase{"adagrad:lr=0.1"}, TrainerCase{"adam:lr=0.01"},
                                         TrainerCase{"sgd:lr=0.1", "value:0.01"},
                                         TrainerCase{"sgd:lr=0.1", "norm:0.1"}));

TEST(Trainers, RepeatAStepAndAreDeterministic) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(64, 784, 10);
  const Net<float> net = net_of("psp-cnn", data);
  const auto w = initial_parameters(net);
  const auto batch = all_rows(data);
  std::vector<std::vector<float>> results;
  for (int run = 0; run < 2; ++run) {
    auto trainer = Trainer::make(net, 0, 64, w, {.optimizer = Sgd{.lr = 0.05}});
    ASSERT_TRUE(trainer) << trainer.error().message;
    ASSERT_TRUE(trainer->step(data, batch, 1));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainer->repeat());
    ASSERT_TRUE(trainer->finish());
    results.emplace_back(w.size());
    ASSERT_TRUE(trainer->read(results.back()));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], w);
}

}  // namespace
}  // namespace starling::models::cuda
