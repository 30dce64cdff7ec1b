/// The interface of a method that compresses gradients.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"

namespace starling::models {

/// A method that decides which part of a gradient a worker sends. The rest stays in the worker's
/// residual, and is added to the next gradient, so that it is delayed, but not lost.
template <class C>
concept CompressionMethod = Alternative<C> &&
    requires(const C method, std::span<const float> g, std::span<float> residual,
             std::span<float> sent) {
  /// An example for `--help`.
  { C::example } -> std::convertible_to<std::string_view>;
  /// True if updates and sums of updates are sparse, because the elements that are not sent wait in
  /// the residual.
  { C::sends_sparse } -> std::convertible_to<bool>;
  /// Adds g to the residual, then moves the part to be sent from the residual to `sent`, which is
  /// overwritten. Apart from rounding of the sum, sent + residual = g + former residual. Requires:
  /// three spans of the same size that do not overlap, and finite values.
  method.compress(g, residual, sent);
};

}  // namespace starling::models
