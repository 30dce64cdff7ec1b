/// Compares the clock of a node with the clock of this process. Not thread-safe.
#pragma once

#include <algorithm>
#include <optional>

#include "starling/engine/core/ids.hpp"

namespace starling::program {

/// Estimates the offset of a node's clock from the times of requests and of the node's replies. The
/// request with the shortest round trip gives the estimate with the smallest error (Cristian,
/// "Probabilistic clock synchronization", Distributed Computing 3, 1989). Both clocks are steady.
class ClockOffset {
 public:
  /// The node has read the time `remote` from its clock after this process's time `sent` and before
  /// `received`.
  void add(core::Time sent, core::Time received, core::Time remote) {
    const Bounds bounds{sent - remote, received - remote};
    if (!best_ || bounds.high - bounds.low < best_->high - best_->low) best_ = bounds;
    highest_low_ = std::max(highest_low_.value_or(bounds.low), bounds.low);
    lowest_high_ = std::min(lowest_high_.value_or(bounds.high), bounds.high);
  }

  [[nodiscard]] bool is_known() const { return best_.has_value(); }

  // The functions below require is_known().

  /// Returns this process's time at which the node's clock showed 0.
  [[nodiscard]] core::Time zero() const { return best_->low + error(); }
  /// Returns the largest error of zero() at the time of the shortest round trip: half its time.
  [[nodiscard]] core::Time error() const { return (best_->high - best_->low) / 2; }
  /// Returns a lower bound of how far the clocks have drifted apart before or after the shortest
  /// round trip; 0 if no request shows a drift.
  [[nodiscard]] core::Time drift() const {
    return std::max({core::Time{}, *highest_low_ - best_->high, best_->low - *lowest_high_});
  }

 private:
  /// zero() is between these two.
  struct Bounds {
    core::Time low{};
    core::Time high{};
  };
  std::optional<Bounds> best_;
  std::optional<core::Time> highest_low_;
  std::optional<core::Time> lowest_high_;
};

}  // namespace starling::program
