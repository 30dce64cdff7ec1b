#pragma once

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// Asynchronous parallel: a worker always passes.
struct Asp {
  static constexpr std::string_view name = "asp";
  static constexpr std::string_view summary = "always pass";

  [[nodiscard]] bool admits(Step, std::span<const Step>) const { return true; }
  [[nodiscard]] std::optional<Step> floor(Step) const { return 0; }
  [[nodiscard]] std::optional<Step> max_lag() const { return unlimited; }

  static Asp parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Asp&) const = default;
};

}  // namespace starling::barrier
