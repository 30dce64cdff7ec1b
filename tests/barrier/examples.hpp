/// Barriers of every kind. For tests.
#pragma once

#include <algorithm>
#include <vector>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {

/// Returns every built-in rule with its default options, alone and, where that is possible, over
/// samples of `beta` workers that are drawn with each kind of weights.
inline std::vector<Barrier> all_barriers(std::size_t beta) {
  std::vector<Barrier> all;
  for (const AnyRule& rule : built_in_rules()) {
    all.push_back({rule});
    if (!can_be_sampled(rule)) continue;
    for (const Weighting weighting :
         {Weighting::uniform, Weighting::availability, Weighting::speed}) {
      const Barrier barrier = sampled(rule, beta, weighting);
      if (check(barrier, beta + 1).ok()) all.push_back(barrier);
    }
  }
  return all;
}

}  // namespace starling::barrier
