#pragma once

#include <cmath>

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// P(X > x) = (least / x)^alpha for x >= least = mean (alpha - 1) / alpha. Below alpha 2 the
/// variance is infinite.
struct Pareto {
  static constexpr std::string_view name = "pareto";
  static constexpr std::string_view form = "pareto:mean=20ms,alpha=2.5";

  Duration mean{};
  double alpha = 2.5;

  static Pareto parse(LawReader& read) { return {read.mean(), read.number("alpha", 1.001, 1e6)}; }
  [[nodiscard]] std::string options() const { return mean_and(mean, "alpha", alpha); }

  [[nodiscard]] double draw(Random& random) const {
    const double least = in_ns(mean) * (alpha - 1) / alpha;
    return least * std::pow(1 - random.real(), -1 / alpha);
  }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Pareto&) const = default;
};

}  // namespace starling::laws
