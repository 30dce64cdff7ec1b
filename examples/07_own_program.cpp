// A program of one's own: all that `starling` does, with a model and a barrier of one's own in it.
// The model predicts a quantile of the target: at q=0.9, what nine of ten targets lie below.
//
//     cmake --preset dev && cmake --build --preset dev --target 07_own_program
//     build/dev/examples/07_own_program train --data linear:d=20,n=10000 --model quantile:q=0.9
//         --barrier phalf:beta=2 --epochs 20 --save m.safetensors       (one line)
//     build/dev/examples/07_own_program evaluate m.safetensors
//     build/dev/examples/07_own_program predict m.safetensors --out p.csv
//     build/dev/examples/07_own_program models              (and barriers, train --help, ...)
//
// Nodes of a cluster know the same models and barriers; on three of them, here on one machine:
//
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7401 &
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/07_own_program node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/07_own_program submit --to 127.0.0.1:7402 --data linear:d=20,n=10000
//         --model quantile:q=0.9 --barrier phalf:beta=2 --workers 6 --epochs 20 --save
//         m.safetensors
//
// The first run learns in less than a second; its summary and `evaluate` end in the share of unseen
// targets that lie below what is predicted, about as asked:
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

  static float estimate(std::span<const float> w, const models::Table& data, std::uint32_t i) {
    const auto x = data.dense_row(i);
    return std::inner_product(x.begin(), x.end(), w.begin(), w.back());
  }
  /// The loss falls with the estimate where the target lies above, and rises where it lies below.
  [[nodiscard]] float slope(float above) const { return above > 0 ? -q : 1 - q; }

  double gradient(std::span<const float> w, const models::Table& data, models::Batch batch,
                  std::span<float> g, models::Pass& pass) const {
    for (const std::uint32_t i : batch) {
      const float by =
          slope(data.label(i) - estimate(w, data, i)) / static_cast<float>(batch.size());
      const auto x = data.dense_row(i);
      for (std::size_t j = 0; j < features; ++j) g[j] += by * x[j];
      g.back() += by;
    }
    return evaluate(w, data, batch, pass)[0].value;
  }

  models::Metrics evaluate(std::span<const float> w, const models::Table& data, models::Batch batch,
                           models::Pass&) const {
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
                      models::Pass&, std::span<float> out) {
    std::ranges::transform(batch, out.begin(), [&](auto i) { return estimate(w, data, i); });
  }
};

/// How `--model quantile:q=0.9` makes one for the data.
QuantileRegression make_quantile(SpecReader& options, const models::Table& data) {
  return {.features = data.features(),
          .q = static_cast<float>(options.number("q", 0.5, 0.01, 0.99))};
}

/// Go on when half of those seen are not behind.
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
