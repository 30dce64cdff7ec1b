/// Tells when something is due that happens every so many steps, as evaluations and checkpoints.
/// Plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "starling/engine/core/message.hpp"

namespace starling::actor {

/// Is due at each multiple of `every` that the workers' mean step reaches; never where `every` is
/// 0.
class PeriodicTrigger {
 public:
  /// Multiples up to `from` are left out: the workers have made so many steps already.
  explicit PeriodicTrigger(core::Step every, double from = 0)
      : every_(static_cast<double>(every)), next_(after(from)) {}

  /// The next step at which it is due.
  [[nodiscard]] double next() const { return next_; }

  /// The workers have come to `step`. Returns how often it has become due since the last call, at
  /// `step` itself included.
  std::uint64_t advance_to(double step) {
    if (!(step >= next_)) return 0;
    const double first = next_;
    next_ = after(step);
    return static_cast<std::uint64_t>(std::llround((next_ - first) / every_));
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
