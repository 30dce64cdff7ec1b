/// Optimisers: how a gradient changes the parameters. The owner of a range runs them. This file
/// defines their hyper-parameters and the update itself; the state ("slots") belongs to the caller.
/// Plain values and functions; any thread may call them on memory of its own.
///
/// In the formulas g is the gradient plus l2 * w, and lr is the optimiser's rate times rate_scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "starling/base/result.hpp"

namespace starling::models {

/// Gradient descent, with momentum if any (Polyak 1964; Sutskever et al., ICML 2013, in the form
/// whose velocity holds no rate):
///
///     momentum 0:  w -= lr g
///     else:        v = momentum v + g;  w -= lr v
///     nesterov:    v = momentum v + g;  w -= lr (g + momentum v)
///
/// Slots: v where momentum > 0.
struct Sgd {
  double lr = 0.1;
  /// In [0, 1).
  double momentum = 0;
  bool nesterov = false;
  bool operator==(const Sgd&) const = default;
};

/// Duchi, Hazan, Singer, JMLR 2011, with a diagonal matrix:
///
///     s += g^2;  w -= lr g / (sqrt(s) + epsilon)
///
/// Slots: s.
struct Adagrad {
  double lr = 0.01;
  double epsilon = 1e-10;
  bool operator==(const Adagrad&) const = default;
};

/// Kingma, Ba, ICLR 2015, algorithm 1:
///
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// Slots: m, v.
struct Adam {
  double lr = 0.001;
  /// In [0, 1).
  double beta1 = 0.9;
  /// In [0, 1).
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool operator==(const Adam&) const = default;
};

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

/// How one update is applied.
struct ApplyOptions {
  /// Multiplies the learning rate: the schedule's factor times the update's sample weight.
  double rate_scale = 1;
  /// Weight decay, added to the gradient as l2 * w.
  double l2 = 0;
  /// Number of updates that this memory has taken, this one included. Adam needs it to be above 0.
  std::uint64_t t = 1;
};

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
