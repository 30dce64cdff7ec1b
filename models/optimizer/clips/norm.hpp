#pragma once

#include "starling/models/optimizer/clips/clip_rule.hpp"

namespace starling::models {

/// Scales the gradient to the norm `limit`, g *= limit / ||g||, if the Euclidean norm of all of g
/// exceeds the limit (Pascanu, Mikolov, Bengio, ICML 2013, algorithm 1). A gradient whose norm is
/// not finite is not scaled.
struct NormClip {
  static constexpr std::string_view name = "norm";
  static constexpr std::string_view example = "norm:1";

  double limit = 1;

  static NormClip parse(SpecReader& reader) { return {read_limit<NormClip>(reader)}; }
  [[nodiscard]] std::string options() const { return print_number(limit); }

  template <class T>
  double apply(Pieces<T> pieces) const {
    double squares = 0;
    for (const std::span<T> g : pieces) squares += squared_norm<T>(g);
    const double norm = std::sqrt(squares);
    if (std::isfinite(norm) && norm > limit)
      for (const std::span<T> g : pieces) scale(static_cast<T>(limit / norm), g);
    return norm;
  }

  bool operator==(const NormClip&) const = default;
};

}  // namespace starling::models
