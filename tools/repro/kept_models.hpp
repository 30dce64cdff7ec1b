/// Keeps the models that the servers of a run held at equally spaced instants, to evaluate them
/// after the run. Not thread-safe.
#pragma once

#include <algorithm>
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

  struct Model {
    /// The number of the instant, from 1, at which the servers held the model.
    std::size_t instant = 0;
    /// The updates of all workers that the model includes.
    double updates = 0;
    States states;
  };

  /// Divides a run of `seconds` into `instants` equal intervals. The instants are their ends.
  KeptModels(double seconds, std::size_t instants)
      : interval_(seconds / static_cast<double>(instants)), instants_(instants) {}

  /// Records the model that the servers held `seconds` after the beginning. Requires: `seconds`
  /// does not decrease from call to call.
  void record(double seconds, double updates, States states) {
    // A model that is recorded between two instants is kept for the later one, unless a newer model
    // is recorded between them. A model that is recorded after the end of the run is kept for the
    // last instant.
    const auto instant = std::min(static_cast<std::size_t>(seconds / interval_) + 1, instants_);
    if (newest_ && newest_->instant < instant) keep_newest();
    newest_ = Model{instant, updates, without_slots(std::move(states))};
  }
  /// Records the model that the servers held at the end of the run.
  void record_end(double updates, States states) {
    if (newest_ && newest_->instant < instants_) keep_newest();
    newest_ = Model{instants_, updates, without_slots(std::move(states))};
    keep_newest();
  }

  /// Returns at most one model for each instant, in the order of the instants. An instant has no
  /// model if none was recorded since the instant before.
  [[nodiscard]] const std::vector<Model>& models() const { return models_; }

  /// Returns a point for each instant, from the first one that has a model on. An instant without a
  /// model has the updates and the accuracy of the instant before. `accuracies` has the accuracy of
  /// each of models(). Requires: record_end() was called.
  [[nodiscard]] std::vector<TrainingPoint> curve(const std::vector<double>& accuracies) const {
    STARLING_CHECK(!models_.empty() && accuracies.size() == models_.size());
    std::vector<TrainingPoint> points;
    std::size_t latest = 0;
    for (std::size_t i = models_.front().instant; i <= instants_; ++i) {
      if (latest + 1 < models_.size() && models_[latest + 1].instant == i) ++latest;
      points.push_back(
          {interval_ * static_cast<double>(i), models_[latest].updates, accuracies[latest]});
    }
    return points;
  }

 private:
  /// Drops the optimiser's slots, which only further training would need.
  static States without_slots(States states) {
    for (core::RangeState& state : states) state.slots = {};
    return states;
  }
  /// Adds the newest model to those that are kept.
  void keep_newest() { models_.push_back(*std::exchange(newest_, std::nullopt)); }

  /// The time from one instant to the next, in seconds.
  double interval_;
  std::size_t instants_;
  /// The model that was recorded last; absent if it was kept already.
  std::optional<Model> newest_;
  std::vector<Model> models_;
};

}  // namespace starling::program
