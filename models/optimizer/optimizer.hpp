/// Optimisers, which change the parameters by a gradient. The owner of a range of the parameters
/// runs them. To add one, write a file in optimizers/, include it here and name it in Optimizer.
/// The caller keeps the optimiser's state: zero or more slots, each a tensor as large as the
/// parameters, such as the momentum. Plain values and functions; any thread may call them on memory
/// of its own.
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

/// One of the optimisers.
using Optimizer = std::variant<Sgd, Adagrad, Adam>;

/// Reads `sgd[:lr=0.1,momentum=0.9,nesterov]`, `adagrad[:lr=0.01,epsilon=1e-10]` or
/// `adam[:lr=0.001,beta1=0.9,beta2=0.999,epsilon=1e-8]`.
[[nodiscard]] Result<Optimizer> parse_optimizer(std::string_view text);

/// Returns text that parse_optimizer reads back to the same value: the rate, and every option that
/// differs from its default.
[[nodiscard]] std::string print(const Optimizer& optimizer);

/// Returns the number of slots; all start at zero.
[[nodiscard]] std::size_t slot_count(const Optimizer& optimizer);

[[nodiscard]] double learning_rate(const Optimizer& optimizer);

/// Applies gradient `g` to `w`. Slot k of w[i] is state[k * slot_stride + i]. To update a part of a
/// range, such as a row, pass the part's spans of w and g, a `state` that begins at the part's
/// first element in slot 0, and the size of the range as `slot_stride`. Requires: g.size() ==
/// w.size(), and `state` includes the last slot of the last element.
template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, std::size_t slot_stride,
           const ApplyOptions& options);

/// Does the same for a whole range: slot_stride is w.size().
template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, const ApplyOptions& options) {
  apply<T>(optimizer, w, g, state, w.size(), options);
}

}  // namespace starling::models
