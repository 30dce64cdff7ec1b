/// The interface of a clip rule, which bounds gradients.
#pragma once

#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::models {

/// One gradient that consists of several spans.
template <class T>
using Pieces = std::span<const std::span<T>>;

/// A clip rule. `apply` runs on the host; models/cuda/kernels/update.hpp has the code for devices.
template <class C>
concept ClipRule = Alternative<C> &&
    requires(const C clip, Pieces<float> floats, Pieces<double> doubles) {
  /// An example for `--help`.
  { C::example } -> std::convertible_to<std::string_view>;
  /// Clips a gradient and returns its Euclidean norm before clipping.
  { clip.apply(floats) } -> std::same_as<double>;
  { clip.apply(doubles) } -> std::same_as<double>;
};

/// Reads the limit, which is the only option of the clip rule C. Refuses a limit that is not above
/// 0 as a float.
template <class C>
[[nodiscard]] double read_limit(SpecReader& reader) {
  const std::string limit_text = reader.positional();
  const auto limit = parse_number(limit_text);
  if (limit && static_cast<float>(*limit) > 0) return *limit;
  reader.refuse("the limit '" + limit_text + "' must be a number above 0 (at least 1e-45), e.g. " +
                std::string{C::example});
  return 0;
}

}  // namespace starling::models
