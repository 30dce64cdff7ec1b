/// A small learning problem whose behaviour under stale updates is known: the noisy quadratic model
/// (Zhang et al., Which Algorithmic Choices Matter at Which Batch Sizes?, NeurIPS 2019, arXiv
/// 1907.04164, section 3). The loss of the parameters w is half the sum of h_i w_i^2 over four
/// curvatures h_i from 0.03 to 1; a worker's gradient is h_i w_i plus normal noise with a variance
/// proportional to h_i. At the start each parameter contributes the same to the loss.
///
/// Several learning rates are tried at once: the parameter vector holds one copy of the four
/// parameters for each rate, and the gradient of a copy is multiplied by its rate. Even if no
/// update is stale, plain SGD diverges at rates above 2. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::program {

/// About a third of the largest rate that is stable without staleness, so that stale updates do no
/// harm.
inline constexpr double small_rate = 0.7;
/// Nine tenths of the largest rate that is stable without staleness, which is 2.
inline constexpr double large_rate = 1.8;
inline constexpr std::array<double, 2> learning_rates{small_rate, large_rate};

/// The target loss, which a run is to reach, as a share of the loss at the start.
inline constexpr double target_loss = 0.01;

/// Returns a job in which every worker learns all copies. The noise depends on `seed`, the worker's
/// id and its step. An update has the weight that it has in training: 1 / the number of workers,
/// unless the updates of a step are applied together; then their mean is applied.
[[nodiscard]] sim::Job quadratic_job(std::uint64_t seed);

/// Returns the parameters with which the job starts.
[[nodiscard]] std::vector<double> initial_parameters();

/// Returns for each rate the loss of a model, as a share of the loss at the start; not a finite
/// number if the parameters have become too large. Requires: `parameters` are the values of the
/// only range of quadratic_job().
[[nodiscard]] std::array<double, learning_rates.size()> losses(std::span<const double> parameters);

}  // namespace starling::program
