#pragma once

#include <cmath>

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// Draws from the gamma distribution with the given shape and scale 1 (Marsaglia, Tsang, ACM TOMS
/// 26, 2000; shapes below 1 as in its section 6).
[[nodiscard]] inline double draw_gamma(double shape, Random& random) {
  if (shape < 1) {
    const double boost = std::pow(1 - random.real(), 1 / shape);
    return draw_gamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {  // each round accepts more than 95 % of its draws
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.real();
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

/// The gamma distribution. Shape 1 is the exponential distribution; a larger shape varies less.
struct Gamma {
  static constexpr std::string_view name = "gamma";
  static constexpr std::string_view example = "gamma:mean=20ms,shape=2";

  Duration mean{};
  double shape = 2;

  static Gamma parse(LawReader& reader) {
    return {reader.mean(), reader.number("shape", 0.001, 1e6)};
  }
  [[nodiscard]] std::string options() const { return print_options(mean, "shape", shape); }

  [[nodiscard]] double draw(Random& random) const {
    return in_ns(mean) / shape * draw_gamma(shape, random);
  }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Gamma&) const = default;
};

}  // namespace starling::laws
