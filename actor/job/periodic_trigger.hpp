/// Decides when work is due that is repeated after a number of steps, such as an evaluation or a
/// checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "starling/engine/core/message.hpp"

namespace starling::actor {

/// Becomes due each time that the workers' mean step reaches a multiple of `every`; never if
/// `every` is 0.
class PeriodicTrigger {
 public:
  /// `from` is the mean step at the start: multiples up to it do not count.
  explicit PeriodicTrigger(core::Step every, double from = 0)
      : every_(static_cast<double>(every)), next_(after(from)) {}

  /// The mean step at which the trigger becomes due next.
  [[nodiscard]] double next() const { return next_; }

  /// Sets the workers' mean step. Returns how often the trigger has become due since the last call,
  /// including at `step` itself.
  std::uint64_t advance_to(double step) {
    if (!(step >= next_)) return 0;
    const double first = next_;
    next_ = after(step);
    return static_cast<std::uint64_t>(std::llround((next_ - first) / every_));
  }
  /// Does the same as advance_to() at the end of the job, when the work is done once more in any
  /// case: so the result does not include `step` itself.
  std::uint64_t advance_to_end(double step) {
    const std::uint64_t due = advance_to(step);
    return due > 0 && std::fmod(step, every_) == 0 ? due - 1 : due;
  }

 private:
  /// The first multiple of `every_` above `step`.
  [[nodiscard]] double after(double step) const {
    if (every_ == 0) return std::numeric_limits<double>::infinity();
    return (std::floor(step / every_) + 1) * every_;
  }

  double every_;
  double next_;
};

}  // namespace starling::actor
