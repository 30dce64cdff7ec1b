/// Optimisers: how a gradient changes the parameters. The owner of a range runs them. A new
/// optimiser is one file in optimizers/, included and named here; the state ("slots") belongs to
/// the caller. Plain values and functions; any thread may call them on memory of its own.
///
/// In the formulas g is the gradient plus l2 * w, and lr is the optimiser's rate times rate_scale.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "starling/base/result.hpp"
#include "starling/models/optimizer/optimizers/adagrad.hpp"
#include "starling/models/optimizer/optimizers/adam.hpp"
#include "starling/models/optimizer/optimizers/sgd.hpp"

namespace starling::models {

/// The closed set of optimisers.
using Optimizer = std::variant<Sgd, Adagrad, Adam>;

/// Reads `sgd[:lr=0.1,momentum=0.9,nesterov]`, `adagrad[:lr=0.01,epsilon=1e-10]` or
/// `adam[:lr=0.001,beta1=0.9,beta2=0.999,epsilon=1e-8]`.
[[nodiscard]] Result<Optimizer> parse_optimizer(std::string_view text);

/// Returns text that parse_optimizer reads back to the same value: the rate, and every option that
/// differs from its default.
[[nodiscard]] std::string print(const Optimizer& optimizer);

/// Number of state tensors for each parameter; all start at zero.
[[nodiscard]] std::size_t slots(const Optimizer& optimizer);

[[nodiscard]] double learning_rate(const Optimizer& optimizer);

/// Applies gradient `g` to `w`. Slot k of w[i] is state[k * slot_stride + i]: for a piece of a
/// range (a row, a tensor), pass the sub-span of w and g, the state from the piece's place in
/// slot 0 on, and the range's size as stride.
/// Requires: g.size() == w.size(), and state to hold the last slot of the last element.
template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, std::size_t slot_stride,
           const ApplyOptions& options);

/// The same for a whole range: slot_stride is w.size().
template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, const ApplyOptions& options) {
  apply<T>(optimizer, w, g, state, w.size(), options);
}

}  // namespace starling::models
