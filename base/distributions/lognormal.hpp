#pragma once

#include <cmath>

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// The lognormal distribution; `sigma` is the standard deviation of the logarithm.
struct Lognormal {
  static constexpr std::string_view name = "lognormal";
  static constexpr std::string_view example = "lognormal:mean=20ms,sigma=0.5";

  Duration mean{};
  double sigma = 0.5;

  static Lognormal parse(LawReader& reader) {
    return {reader.mean(), reader.number("sigma", 0, 10)};
  }
  [[nodiscard]] std::string options() const { return print_options(mean, "sigma", sigma); }

  [[nodiscard]] double draw(Random& random) const {
    return in_ns(mean) * std::exp(sigma * random.normal() - sigma * sigma / 2);
  }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Lognormal&) const = default;
};

}  // namespace starling::laws
