#pragma once

#include <tuple>

namespace starling::barrier {

/// How steeply the loss falls along the model's latest move: from the model that a worker read in
/// its former step to the one that it read in this step. The two numbers are the inner products of
/// this move with the gradients of the two steps' batches, with the sign turned: the fall of the
/// loss that each gradient predicts for the whole move.
///
/// Their mean is the fall of a quadratic loss. If they are equal, the move was short against the
/// curvature of the loss. If `at_end` is 0, the move ended at the lowest loss in its direction; if
/// it is below 0, the move went too far.
struct Descent {
  double at_start = 0;
  double at_end = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.at_start, m.at_end); }
  bool operator==(const Descent&) const = default;
};

}  // namespace starling::barrier
