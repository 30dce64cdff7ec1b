// A user's own program: it has all commands of `starling`, and a model and a barrier of the user's.
// The model predicts a quantile of the target: with q=0.9, nine of ten targets lie below it.
//
//     cmake --preset dev && cmake --build --preset dev --target 07_own_program
//     build/dev/examples/07_own_program train --data linear:d=20,n=10000 --model quantile:q=0.9
//         --barrier phalf:beta=2 --epochs 20 --save m.safetensors       (one line)
//     build/dev/examples/07_own_program evaluate m.safetensors
//     build/dev/examples/07_own_program predict m.safetensors --out p.csv
//     build/dev/examples/07_own_program models              (and barriers, train --help, ...)
//
// Nodes of this program have the same models and barriers. These commands start a cluster of three
// nodes, here on one machine, and submit a job:
//
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7401 &
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/07_own_program submit --to 127.0.0.1:7402 --data linear:d=20,n=10000
//         --model quantile:q=0.9 --barrier phalf:beta=2 --workers 6 --epochs 20 --save
//         m.safetensors
//
// The first run trains in less than a second. Its summary and the output of `evaluate` end with the
// share of unseen targets that lie below the prediction, which is near q:
//
//     test        loss 0.01814, below 0.8935
#include <algorithm>
#include <numeric>

#include "starling/starling.hpp"

using namespace starling;

/// Linear regression by the pinball loss (Koenker and Bassett 1978).
struct QuantileRegression {
  using Scalar = float;
  std::size_t features = 0;
  float q = 0.5F;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "weights", .shape = {features}}, {.name = "bias", .decay = false}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  /// Refuses data that this model cannot read.
  static Result<void> accepts(const models::Table& data) {
    if (data.is_sparse()) return Error{"quantile: the rows are sparse; valid: dense rows"};
    return {};
  }

  static float estimate(std::span<const float> w, const models::Table& data, std::uint32_t i) {
    const auto x = data.dense_row(i);
    return std::inner_product(x.begin(), x.end(), w.begin(), w.back());
  }
  /// Returns the derivative of the loss with respect to the estimate. `above` is the target minus
  /// the estimate.
  [[nodiscard]] float slope(float above) const { return above > 0 ? -q : 1 - q; }

  double gradient(std::span<const float> w, const models::Table& data, models::Batch batch,
                  std::span<float> g, models::ComputeContext& context) const {
    for (const std::uint32_t i : batch) {
      const float derivative =
          slope(data.label(i) - estimate(w, data, i)) / static_cast<float>(batch.size());
      const auto x = data.dense_row(i);
      for (std::size_t j = 0; j < features; ++j) g[j] += derivative * x[j];
      g.back() += derivative;
    }
    return evaluate(w, data, batch, context)[0].value;
  }

  models::Metrics evaluate(std::span<const float> w, const models::Table& data, models::Batch batch,
                           models::ComputeContext&) const {
    double loss = 0;
    double below = 0;
    for (const std::uint32_t i : batch) {
      const float above = data.label(i) - estimate(w, data, i);
      loss -= static_cast<double>(slope(above) * above) / static_cast<double>(batch.size());
      below += (above <= 0 ? 1.0 : 0.0) / static_cast<double>(batch.size());
    }
    return {{"loss", loss}, {"below", below}};
  }

  /// Computes the predictions that `predict` writes.
  static void predict(std::span<const float> w, const models::Table& data, models::Batch batch,
                      models::ComputeContext&, std::span<float> out) {
    std::ranges::transform(batch, out.begin(), [&](auto i) { return estimate(w, data, i); });
  }
};

/// Makes the model of `--model quantile:q=0.9` for the data.
QuantileRegression make_quantile(SpecReader& options, const models::Table& data) {
  return {.features = data.features(),
          .q = static_cast<float>(options.number("q", 0.5, 0.01, 0.99))};
}

/// Lets a worker pass if at least half of the workers that it sees are not behind it.
bool half(barrier::Step own, std::span<const barrier::Step> seen) {
  return 2 * std::ranges::count_if(seen, [&](auto step) { return step >= own; }) >=
         std::ssize(seen);
}

int main(int argc, char** argv) {
  Registry registry;
  registry.model<QuantileRegression>("quantile", "a quantile of the target: quantile[:q=0.5]",
                                     make_quantile);
  registry.barrier(barrier::Predicate::make("half", half), "half of those seen are not behind me");
  return starling::main(argc, argv, std::move(registry));
}
