/// The interface of an optimiser, and the types that its update works on.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "starling/base/alternatives.hpp"
#include "starling/models/kernels/host_device.hpp"
#include "starling/models/kernels/multiversioning.hpp"

namespace starling::models {

/// The options of one update.
struct ApplyOptions {
  /// The factor by which the learning rate is multiplied: that of the schedule times the update's
  /// sample weight.
  double rate_scale = 1;
  /// The weight decay: l2 * w is added to the gradient.
  double l2 = 0;
  /// The number of updates of these parameters so far, including this one. Adam requires t > 0.
  std::uint64_t t = 1;
};

/// The optimiser's state for element i of the parameters: slots[k] is the value in slot k.
template <class T>
struct Slots {
  T* state;
  std::size_t stride;
  std::size_t i;

  STARLING_INLINE STARLING_HOST_DEVICE T& operator[](std::size_t k) const {
    return state[k * stride + i];
  }
};

/// A function object that makes one update of one parameter w in place. The argument g is the
/// derivative of the loss with respect to w, plus l2 * w. The object holds only numbers, because it
/// is copied to devices as bytes. Its operator() is marked STARLING_INLINE and
/// STARLING_HOST_DEVICE: optimizer.cpp calls it in a loop, and
/// models/cuda/training/device_update.cu in a kernel.
template <class U, class T>
concept UpdateOf = std::is_trivially_copyable_v<U> &&
    requires(const U update, T g, T& w, const Slots<T>& slots) {
  { update(g, w, slots) } -> std::same_as<void>;
};

/// An optimiser, which decides how gradients change parameters.
template <class O>
concept OptimizerRule = Alternative<O> && requires(const O optimizer, const ApplyOptions& options) {
  /// An example for `--help`.
  { O::example } -> std::convertible_to<std::string_view>;
  { optimizer.lr } -> std::convertible_to<double>;
  /// The number of slots, the state tensors; all start at zero.
  { optimizer.slot_count() } -> std::same_as<std::size_t>;
  /// Returns the function object that makes updates with these options.
  { optimizer.template make_update<float>(options) } -> UpdateOf<float>;
  { optimizer.template make_update<double>(options) } -> UpdateOf<double>;
};

/// Reads a learning rate.
[[nodiscard]] inline double read_rate(SpecReader& reader, double default_value) {
  return reader.number("lr", default_value, 0, 1e6);
}

/// Reads a decay factor in [0, 1), such as momentum or beta1.
[[nodiscard]] inline double read_decay(SpecReader& reader, const char* option,
                                       double default_value) {
  const double value = reader.number(option, default_value, 0, 1);
  if (static_cast<float>(value) == 1)  // else moving averages in floats would never move
    reader.refuse(std::string{option} + "=" + print_number(value) +
                  " is 1 as a float; valid: 0 to 0.9999999");
  return value;
}

/// Reads epsilon, a small positive number that is added to a divisor.
[[nodiscard]] inline double read_epsilon(SpecReader& reader, double default_value) {
  return reader.number("epsilon", default_value, 1e-30, 1);
}

/// Returns ",option=value"; empty if the value is the default.
[[nodiscard]] inline std::string print_option(const char* option, double value,
                                              double default_value) {
  return value == default_value ? "" : std::string{","} + option + "=" + print_number(value);
}

}  // namespace starling::models
