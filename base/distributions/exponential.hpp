#pragma once

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// The exponential distribution.
struct Exponential {
  static constexpr std::string_view name = "exp";
  static constexpr std::string_view example = "exp:20ms";

  Duration mean{};

  static Exponential parse(LawReader& reader) { return {reader.mean()}; }
  [[nodiscard]] std::string options() const { return print_duration(mean); }

  [[nodiscard]] double draw(Random& random) const { return random.exponential(in_ns(mean)); }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Exponential&) const = default;
};

}  // namespace starling::laws
