#pragma once

#include "starling/models/optimizer/clips/clip_rule.hpp"

namespace starling::models {

/// Clamps every element to [-limit, limit].
struct ValueClip {
  static constexpr std::string_view name = "value";
  static constexpr std::string_view example = "value:1";

  double limit = 1;

  static ValueClip parse(SpecReader& reader) { return {read_limit<ValueClip>(reader)}; }
  [[nodiscard]] std::string options() const { return print_number(limit); }

  template <class T>
  double apply(Pieces<T> pieces) const {
    double squares = 0;
    for (const std::span<T> g : pieces) squares += clamp(static_cast<T>(limit), g);
    return std::sqrt(squares);
  }

  bool operator==(const ValueClip&) const = default;
};

}  // namespace starling::models
