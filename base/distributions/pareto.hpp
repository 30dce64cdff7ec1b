#pragma once

#include <cmath>

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// The Pareto distribution: P(X > x) = (minimum / x)^alpha for x >= minimum, with minimum =
/// mean (alpha - 1) / alpha. For alpha <= 2 the variance is infinite.
struct Pareto {
  static constexpr std::string_view name = "pareto";
  static constexpr std::string_view example = "pareto:mean=20ms,alpha=2.5";

  Duration mean{};
  double alpha = 2.5;

  static Pareto parse(LawReader& reader) {
    return {reader.mean(), reader.number("alpha", 1.001, 1e6)};
  }
  [[nodiscard]] std::string options() const { return print_options(mean, "alpha", alpha); }

  [[nodiscard]] double draw(Random& random) const {
    const double minimum = in_ns(mean) * (alpha - 1) / alpha;
    return minimum * std::pow(1 - random.real(), -1 / alpha);
  }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Pareto&) const = default;
};

}  // namespace starling::laws
