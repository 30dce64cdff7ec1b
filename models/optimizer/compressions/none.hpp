#pragma once

#include <algorithm>

#include "starling/models/optimizer/compressions/compression_method.hpp"

namespace starling::models {

/// Sends each gradient as it is, and has no residual.
struct NoCompression {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view example = "none";
  static constexpr bool sends_sparse = false;

  static NoCompression parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  void compress(std::span<const float> g, std::span<float>, std::span<float> sent) const {
    std::ranges::copy(g, sent.begin());
  }

  bool operator==(const NoCompression&) const = default;
};

}  // namespace starling::models
