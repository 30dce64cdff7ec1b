#pragma once

#include "starling/models/optimizer/clips/limit.hpp"

namespace starling::models {

/// The gradient stays as it is. Its norm is not computed; 0 stands for it.
struct NoClip {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view form = "none";

  static NoClip parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  template <class T>
  double apply(Pieces<T>) const {
    return 0;
  }

  bool operator==(const NoClip&) const = default;
};

}  // namespace starling::models
