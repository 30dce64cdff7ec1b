/// The steps at which something is due that happens every so many steps. Plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "starling/engine/core/message.hpp"

namespace starling::actor {

/// The multiples of `every` that the workers' mean step comes to; none where `every` is 0.
class Milestones {
 public:
  /// Milestones above `from` are to come.
  explicit Milestones(core::Step every, double from = 0)
      : every_(static_cast<double>(every)), next_(after(from)) {}

  [[nodiscard]] double next() const { return next_; }

  /// How many milestones the workers have passed since the last call, up to `step`, which is
  /// included where it is a milestone itself.
  std::uint64_t pass(double step) {
    if (!(step >= next_)) return 0;
    const double first = next_;
    next_ = after(step);
    return static_cast<std::uint64_t>(std::llround((next_ - first) / every_));
  }

 private:
  [[nodiscard]] double after(double step) const {
    if (every_ == 0) return std::numeric_limits<double>::infinity();
    return (std::floor(step / every_) + 1) * every_;
  }

  double every_;
  double next_;
};

}  // namespace starling::actor
