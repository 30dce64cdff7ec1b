#pragma once

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// Every draw is the mean.
struct Constant {
  static constexpr std::string_view name = "const";
  static constexpr std::string_view example = "const:20ms";

  Duration mean{};

  static Constant parse(LawReader& reader) { return {reader.mean()}; }
  [[nodiscard]] std::string options() const { return print_duration(mean); }

  [[nodiscard]] double draw(Random&) const { return in_ns(mean); }
  [[nodiscard]] double mean_ns() const { return in_ns(mean); }

  bool operator==(const Constant&) const = default;
};

}  // namespace starling::laws
