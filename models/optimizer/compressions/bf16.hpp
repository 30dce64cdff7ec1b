#pragma once

#include "starling/models/optimizer/compressions/compression_method.hpp"

namespace starling::models {

/// Sends each element with the precision of bfloat16, the upper half of a float, rounded to the
/// nearest value, and to the even one if two are equally near. The rounding error stays in the
/// residual.
struct Bf16 {
  static constexpr std::string_view name = "bf16";
  static constexpr std::string_view example = "bf16";
  static constexpr bool sends_sparse = false;

  static Bf16 parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  void compress(std::span<const float> g, std::span<float> residual, std::span<float> sent) const;

  /// Rounds the values in place, and adds the rounding errors to `errors`, of the same size. Values
  /// that are rounded already do not change.
  static void round(std::span<float> values, std::span<float> errors);

  bool operator==(const Bf16&) const = default;
};

}  // namespace starling::models
