/// The models that a run's servers held at equal instants. Plain values; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/repro/training.hpp"

namespace starling::program {

class KeptModels {
 public:
  using States = std::vector<core::RangeState>;

  struct Kept {
    std::size_t instant = 0;
    double updates = 0;
    States states;
  };

  /// Divides a run of `seconds` into `instants` equal intervals, the last one ending with the run.
  KeptModels(double seconds, std::size_t instants)
      : interval_(seconds / static_cast<double>(instants)), instants_(instants) {}

  /// Records what the servers held `seconds` after the beginning. Requires: times ascend.
  void see(double seconds, double updates, States states) {
    // A model seen between two instants is that of the later one, until a newer model is seen.
    const auto instant = static_cast<std::size_t>(seconds / interval_) + 1;
    if (newest_ && newest_->instant < instant) keep_newest();
    newest_ = Kept{instant, updates, values_of(std::move(states))};
  }
  /// Records what the servers held at the end.
  void end(double updates, States states) {
    if (newest_ && newest_->instant < instants_) keep_newest();
    newest_ = Kept{instants_, updates, values_of(std::move(states))};
    keep_newest();
  }

  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }

  /// Returns a point for each instant from the first that was kept; `accuracies` are those of
  /// kept(). Where nothing was seen since the instant before, the model was the same. Requires:
  /// end() was called.
  [[nodiscard]] std::vector<TrainingPoint> curve(const std::vector<double>& accuracies) const {
    STARLING_CHECK(!kept_.empty() && accuracies.size() == kept_.size());
    std::vector<TrainingPoint> points;
    std::size_t at = 0;
    for (std::size_t i = kept_.front().instant; i <= instants_; ++i) {
      if (at + 1 < kept_.size() && kept_[at + 1].instant == i) ++at;
      points.push_back({interval_ * static_cast<double>(i), kept_[at].updates, accuracies[at]});
    }
    return points;
  }

 private:
  /// Drops the optimiser's slots, which only further training would need.
  static States values_of(States states) {
    for (core::RangeState& state : states) state.slots = {};
    return states;
  }
  void keep_newest() { kept_.push_back(*std::exchange(newest_, std::nullopt)); }

  double interval_;
  std::size_t instants_;
  std::optional<Kept> newest_;
  std::vector<Kept> kept_;
};

}  // namespace starling::program
