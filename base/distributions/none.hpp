#pragma once

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// Every draw is 0.
struct None {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view example = "none";

  [[nodiscard]] std::string options() const { return {}; }

  [[nodiscard]] double draw(Random&) const { return 0; }
  [[nodiscard]] double mean_ns() const { return 0; }

  bool operator==(const None&) const = default;
};

}  // namespace starling::laws
