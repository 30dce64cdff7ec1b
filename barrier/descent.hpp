#pragma once

#include <tuple>

namespace starling::barrier {

/// How steeply the loss falls along the model's latest move: from the model that a worker read in
/// its former step to the one that it read in this step. The two numbers are the inner products of
/// this move with the gradients of the two steps' batches, with the sign turned: the fall of the
/// loss that each gradient predicts for the whole move.
///
/// If the loss is quadratic, it falls by the mean of the two numbers. If the numbers are equal, the
/// move was short compared with the curvature of the loss. If `at_end` is 0, the move ended at the
/// lowest loss in its direction; if `at_end` is below 0, the move went too far.
struct Descent {
  /// From the gradient of the former step.
  double at_start = 0;
  /// From the gradient of this step.
  double at_end = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.at_start, m.at_end); }
  bool operator==(const Descent&) const = default;
};

}  // namespace starling::barrier
