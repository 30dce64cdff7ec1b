/// The models that the servers of a run held at instants of equal distance. Plain values; one
/// thread at a time.
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

  /// A model, with the number of the instant at which the servers held it, from 1.
  struct Model {
    std::size_t instant = 0;
    double updates = 0;
    States states;
  };

  /// Divides a run of `seconds` into `instants` equal intervals, the last one ending with the run.
  KeptModels(double seconds, std::size_t instants)
      : interval_(seconds / static_cast<double>(instants)), instants_(instants) {}

  /// Records the model that the servers held `seconds` after the beginning. Requires: times ascend.
  void record(double seconds, double updates, States states) {
    // A model recorded between two instants counts for the later one, unless a newer one follows.
    const auto instant = static_cast<std::size_t>(seconds / interval_) + 1;
    if (newest_ && newest_->instant < instant) keep_newest();
    newest_ = Model{instant, updates, without_slots(std::move(states))};
  }
  /// Records the model that the servers held at the end.
  void record_end(double updates, States states) {
    if (newest_ && newest_->instant < instants_) keep_newest();
    newest_ = Model{instants_, updates, without_slots(std::move(states))};
    keep_newest();
  }

  [[nodiscard]] const std::vector<Model>& models() const { return models_; }

  /// Returns a point for each instant from the first one with a model; `accuracies` are those of
  /// the models(). An instant without a new model has that of the instant before. Requires:
  /// record_end() was called.
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
  void keep_newest() { models_.push_back(*std::exchange(newest_, std::nullopt)); }

  double interval_;
  std::size_t instants_;
  std::optional<Model> newest_;
  std::vector<Model> models_;
};

}  // namespace starling::program
