/// Collects, while a job runs, the points of the curves that its report shows. Their memory is
/// bounded, however long the job is. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/job/job.hpp"

namespace starling::program {

/// Keeps every n-th of the points that are added, and the last one. Doubles n whenever more than
/// `points_max` points would be kept.
template <class Point>
class ThinnedSeries {
 public:
  static constexpr std::size_t points_max = 2000;

  void add(Point point) {
    if (count_ % stride_ == 0) {
      if (kept_.size() == points_max) thin_out();
      if (count_ % stride_ == 0) kept_.push_back(point);
    }
    ++count_;
    last_ = std::move(point);
  }

  [[nodiscard]] std::vector<Point> points() const {
    std::vector<Point> all = kept_;
    if (count_ > 0 && (count_ - 1) % stride_ != 0) all.push_back(*last_);
    return all;
  }
  /// Returns how many points were added.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Returns n: every n-th point is kept.
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }

 private:
  void thin_out() {
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = std::move(kept_[2 * i]);
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }

  std::vector<Point> kept_;
  std::optional<Point> last_;
  std::size_t count_ = 0;
  std::size_t stride_ = 1;
};

/// The figures in a `progress` line of the metrics file, as far as the report shows them.
struct ProgressPoint {
  double elapsed_s = 0;
  /// The mean step of the workers.
  double step = 0;
  /// The minimum, median and maximum of the workers' steps.
  actor::Spread spread{};
  /// How many draws the sampled barriers of all workers have made so far, and how many of them let
  /// a worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The share of the workers' time in which they waited so far, and the mean training loss since
  /// the line before. Both are absent before the first update.
  std::optional<double> waiting_share = std::nullopt;
  std::optional<double> loss = std::nullopt;
};

/// The figures in an `evaluation` line of the metrics file, as far as the report shows them.
struct EvaluationPoint {
  double elapsed_s = 0;
  /// The mean step of the workers when the evaluated model was read.
  double step = 0;
  models::Metrics test{};
};

/// The curves of one job, and its warnings.
class Curves {
 public:
  /// `steps_before` is the sum of the steps with which the workers of this run began; 0 without a
  /// checkpoint.
  void add_progress(const actor::Progress& progress, std::size_t workers,
                    std::uint64_t steps_before);
  void add_evaluation(const actor::Progress& progress);
  /// Adds a warning, if it is one of the first hundred.
  void add_warning(const std::string& text);

  [[nodiscard]] const ThinnedSeries<ProgressPoint>& progress() const noexcept { return progress_; }
  [[nodiscard]] const ThinnedSeries<EvaluationPoint>& evaluations() const noexcept {
    return evaluations_;
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  ThinnedSeries<ProgressPoint> progress_;
  ThinnedSeries<EvaluationPoint> evaluations_;
  std::vector<std::string> warnings_;
};

}  // namespace starling::program
