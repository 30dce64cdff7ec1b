#pragma once

#include "starling/models/optimizer/clips/clip_rule.hpp"

namespace starling::models {

/// Leaves the gradient as it is. Does not compute its norm and returns 0 instead.
struct NoClip {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view example = "none";

  static NoClip parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  template <class T>
  double apply(Pieces<T>) const {
    return 0;
  }

  bool operator==(const NoClip&) const = default;
};

}  // namespace starling::models
