#include "starling/tools/train/curves.hpp"

#include <chrono>

#include "starling/base/seconds.hpp"

namespace starling::program {

void Curves::add_progress(const actor::Progress& progress, std::size_t workers,
                          std::uint64_t steps_before) {
  ProgressPoint point{.elapsed_s = in_seconds(progress.elapsed),
                      .step = progress.mean_step_of(workers),
                      .spread = progress.spread,
                      .draws = progress.draws,
                      .passes = progress.passes};
  if (progress.updates > steps_before) {
    point.waiting_share = progress.waiting_share;
    point.loss = progress.loss;
  }
  progress_.add(point);
}

void Curves::add_evaluation(const actor::Progress& progress) {
  evaluations_.add({.elapsed_s = in_seconds(progress.elapsed),
                    .step = progress.evaluated_at,
                    .test = progress.test});
}

void Curves::add_warning(const std::string& text) {
  constexpr std::size_t warnings_max = 100;
  if (warnings_.size() < warnings_max) warnings_.push_back(text);
}

}  // namespace starling::program
