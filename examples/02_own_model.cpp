// A user's own model: linear regression with Huber's loss, on which outliers have little influence.
// Any plain type with these five members is a model (starling/models/model.hpp).
//
//     cmake --preset dev && cmake --build --preset dev --target 02_own_model
//     build/dev/examples/02_own_model
//
// prints, in less than a second, how much of the mean absolute error is left (most of it is noise):
//
//     loss 0.0058: the model kept 1.3 per cent of the error it began with
#include <cmath>
#include <cstdio>

#include "starling/actor/train/train.hpp"
#include "starling/models/data/load.hpp"

using namespace starling;

/// Quadratic near the target, linear beyond a distance of 1 (Huber 1964).
struct HuberRegression {
  using Scalar = float;
  std::size_t features;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "weights", .shape = {features}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }

  static float residual(std::span<const float> w, const models::Table& data, std::uint32_t i) {
    const auto x = data.dense_row(i);
    return std::inner_product(x.begin(), x.end(), w.begin(), -data.label(i));
  }
  static float huber(float r) { return std::abs(r) <= 1 ? r * r / 2 : std::abs(r) - 0.5F; }

  float gradient(std::span<const float> w, const models::Table& data, models::Batch batch,
                 std::span<float> g, models::ComputeContext&) const {
    float loss = 0;
    const auto share = 1 / static_cast<float>(batch.size());
    for (const std::uint32_t i : batch) {
      const float r = residual(w, data, i);
      const float slope = share * std::clamp(r, -1.0F, 1.0F);
      const auto x = data.dense_row(i);
      for (std::size_t j = 0; j < features; ++j) g[j] += slope * x[j];
      loss += share * huber(r);
    }
    return loss;
  }

  models::Metrics evaluate(std::span<const float> w, const models::Table& data, models::Batch batch,
                           models::ComputeContext&) const {
    double loss = 0;
    double error = 0;
    for (const std::uint32_t i : batch) {
      const float r = residual(w, data, i);
      loss += static_cast<double>(huber(r)) / static_cast<double>(batch.size());
      error += static_cast<double>(std::abs(r)) / static_cast<double>(batch.size());
    }
    return {{"loss", loss}, {"mae", error}};
  }
};

int main() {
  const auto source = models::Source::parse("linear:d=50,n=4000,noise=0.1").value();
  const auto data = models::load_pair(source, source, 1).value();
  const HuberRegression model{data.train.features()};

  actor::TrainOptions options;
  options.optimizer = models::parse_optimizer("sgd:lr=0.1,momentum=0.9").value();
  options.epochs = 20;
  const auto outcome = actor::train(model, data.train, &data.test, options);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), 1;
  if (outcome->end == actor::Outcome::End::failed)
    return std::fprintf(stderr, "%s\n", outcome->error.c_str()), 1;

  models::Arena arena;
  const std::vector<float> zero(model.features);
  const auto before = models::evaluate_all(model, std::span{zero}, data.test, arena);
  const auto& after = outcome->last.test;
  const double kept = 100 * after[1].value / before[1].value;
  if (kept > 50) return std::fprintf(stderr, "nothing learned: %.0f per cent\n", kept), 1;
  std::printf("loss %.4f: the model kept %.1f per cent of the error it began with\n",
              after[0].value, kept);
}
