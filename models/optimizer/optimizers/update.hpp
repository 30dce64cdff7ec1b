/// The interface of an optimiser, and the things that its update works on.
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

/// How one update is applied.
struct ApplyOptions {
  /// Multiplies the learning rate: the schedule's factor times the update's sample weight.
  double rate_scale = 1;
  /// Weight decay, added to the gradient as l2 * w.
  double l2 = 0;
  /// Number of updates that this memory has taken, this one included. Adam needs it to be above 0.
  std::uint64_t t = 1;
};

/// The state of parameter i: slots[k] is its number in slot k.
template <class T>
struct Slots {
  T* state;
  std::size_t stride;
  std::size_t i;

  STARLING_INLINE STARLING_HOST_DEVICE T& operator[](std::size_t k) const {
    return state[k * stride + i];
  }
};

/// The arithmetic of one update: moves one parameter w by its slope, which is the gradient plus
/// l2 * w. It holds only numbers, which are copied to devices as bytes. Its operator() is marked
/// STARLING_INLINE and STARLING_HOST_DEVICE: optimizer.cpp calls it in a loop, and
/// models/cuda/training/device_update.cu in a kernel.
template <class U, class T>
concept UpdateOf = std::is_trivially_copyable_v<U> &&
    requires(const U update, T slope, T& w, const Slots<T>& slots) {
  { update(slope, w, slots) } -> std::same_as<void>;
};

/// Decides how gradients change parameters.
template <class O>
concept OptimizerRule = Alternative<O> && requires(const O optimizer, const ApplyOptions& options) {
  /// An example for `--help`.
  { O::form } -> std::convertible_to<std::string_view>;
  { optimizer.lr } -> std::convertible_to<double>;
  /// Number of state tensors for each parameter; all start at zero.
  { optimizer.slots() } -> std::same_as<std::size_t>;
  /// The arithmetic of the update that the options describe.
  { optimizer.template update<float>(options) } -> UpdateOf<float>;
  { optimizer.template update<double>(options) } -> UpdateOf<double>;
};

/// Reads a learning rate.
[[nodiscard]] inline double read_rate(SpecReader& read, double otherwise) {
  return read.number("lr", otherwise, 0, 1e6);
}

/// Reads a factor in [0, 1).
[[nodiscard]] inline double read_decay(SpecReader& read, const char* key, double otherwise) {
  const double value = read.number(key, otherwise, 0, 1);
  if (value == 1) read.refuse(std::string{key} + "=1 must be below 1");
  return value;
}

/// Reads a number that is added to a divisor.
[[nodiscard]] inline double read_epsilon(SpecReader& read, double otherwise) {
  return read.number("epsilon", otherwise, 1e-30, 1);
}

/// Returns ",key=value", or nothing where the value is the default.
[[nodiscard]] inline std::string option(const char* key, double value, double by_default) {
  return value == by_default ? "" : std::string{","} + key + "=" + print_number(value);
}

}  // namespace starling::models
