#pragma once

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// The uniform distribution from 0 to twice the mean.
struct Uniform {
  static constexpr std::string_view name = "uniform";
  static constexpr std::string_view example = "uniform:20ms";

  Duration mean{};

  static Uniform parse(LawReader& reader) { return {reader.mean()}; }
  [[nodiscard]] std::string options() const { return print_duration(mean); }

  [[nodiscard]] double draw(Random& random) const { return random.real(0, 2 * in_ns(mean)); }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Uniform&) const = default;
};

}  // namespace starling::laws
