// A user's own data: samples need not be stored. The points of these rings are computed when they
// are read; point i is the same each time. A data set is any type that has size() and the members
// that its model reads.
//
//     cmake --preset dev && cmake --build --preset dev --target 03_own_data
//     build/dev/examples/03_own_data
//
// prints, in less than a second:
//
//     100 % of 2000 unseen points: the model tells rings apart
#include <cmath>
#include <cstdio>

#include "starling/actor/train/train.hpp"

using namespace starling;

/// Points around the origin at a radius of 1 (label -1) or 2 (label 1), with some noise.
struct Rings {
  std::size_t count;
  std::uint64_t seed;

  struct Sample {
    double x, y, label;
  };
  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] Sample operator[](std::uint32_t i) const {
    Random random = Random::stream(seed, i);
    const double angle = random.real(0, 2 * std::numbers::pi);
    const double radius = 1 + i % 2 + 0.1 * random.normal();
    return {radius * std::cos(angle), radius * std::sin(angle), i % 2 ? 1.0 : -1.0};
  }
};

/// Logistic regression on the square of the radius: w = (slope, offset).
struct RingModel {
  using Scalar = double;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "weights", .shape = {2}}};
  }
  void initialise(std::span<double> w, Random&) const { std::ranges::fill(w, 0.0); }

  static double square(const Rings::Sample& s) { return s.x * s.x + s.y * s.y; }
  /// Above 0 if the sample is classified correctly.
  static double margin(std::span<const double> w, const Rings::Sample& s) {
    return s.label * (w[0] * square(s) + w[1]);
  }

  double gradient(std::span<const double> w, const Rings& data, models::Batch batch,
                  std::span<double> g, models::ComputeContext&) const {
    double loss = 0;
    const double share = 1 / static_cast<double>(batch.size());
    for (const std::uint32_t i : batch) {
      const auto sample = data[i];
      const double m = margin(w, sample);
      const double slope = -share * sample.label / (1 + std::exp(m));
      g[0] += slope * square(sample);
      g[1] += slope;
      loss += share * std::log1p(std::exp(-m));
    }
    return loss;
  }

  models::Metrics evaluate(std::span<const double> w, const Rings& data, models::Batch batch,
                           models::ComputeContext&) const {
    double loss = 0;
    double right = 0;
    for (const std::uint32_t i : batch) {
      const double m = margin(w, data[i]);
      loss += std::log1p(std::exp(-m));
      right += m > 0 ? 1 : 0;
    }
    const double n = static_cast<double>(batch.size());
    return {{"loss", loss / n}, {"accuracy", right / n}};
  }
};

int main() {
  const Rings train{.count = 20'000, .seed = 1};
  const Rings test{.count = 2'000, .seed = 2};
  actor::TrainOptions options;
  options.optimizer = models::Sgd{.lr = 0.5};
  options.epochs = 4;
  const auto outcome = actor::train(RingModel{}, train, &test, options);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), 1;
  if (outcome->end == actor::Outcome::End::failed)
    return std::fprintf(stderr, "%s\n", outcome->error.c_str()), 1;
  const double accuracy = outcome->last.test[1].value;
  std::printf("%.0f %% of 2000 unseen points: %s\n", 100 * accuracy,
              accuracy > 0.98 ? "the model tells rings apart" : "too few; expected more than 98 %");
  return accuracy > 0.98 ? 0 : 1;
}
