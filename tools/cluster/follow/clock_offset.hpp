/// Compares the clock of a node with the clock of this process.
#pragma once

#include <algorithm>
#include <optional>

#include "starling/engine/core/ids.hpp"

namespace starling::program {

/// The offset of a node's clock, from the times of requests and the node's replies, as in Cristian,
/// "Probabilistic clock synchronization" (Distributed Computing 3, 1989): the request with the
/// shortest round trip says it best. Times are of two steady clocks.
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

  // Require: is_known().

  /// Returns this process's time at which the node's clock showed 0.
  [[nodiscard]] core::Time zero() const { return best_->low + error(); }
  /// Returns the largest error of zero() at the time of the shortest round trip: half of it.
  [[nodiscard]] core::Time error() const { return (best_->high - best_->low) / 2; }
  /// Returns by how much the clocks have drifted apart at least, before or after the shortest round
  /// trip; 0 if no request shows a drift.
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
