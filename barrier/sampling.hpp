/// Draws the workers that a sampled barrier sees, and computes the exact probability that a worker
/// passes with such a draw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"

namespace starling::barrier {

/// Fills `drawn` with `count` different numbers of [0, population). Every subset is equally likely,
/// in every order. Requires: count <= population.
///
/// Up to 32 numbers are drawn by Floyd's method, algorithm P (Bentley, Floyd, CACM 1987), which
/// needs no memory beyond the sample; more are drawn by a partial Fisher-Yates shuffle.
inline void draw(std::uint32_t population, std::uint32_t count, Random& random,
                 std::vector<std::uint32_t>& drawn) {
  drawn.clear();
  if (count <= 32) {
    for (std::uint32_t last = population - count; last < population; ++last) {
      const auto pick = static_cast<std::uint32_t>(random.below(last + 1U));
      // Inserts a number before all others or, if it was drawn already, `last` right behind it.
      const auto same = std::ranges::find(drawn, pick);
      if (same == drawn.end())
        drawn.insert(drawn.begin(), pick);
      else
        drawn.insert(same + 1, last);
    }
    return;
  }
  drawn.resize(population);
  std::iota(drawn.begin(), drawn.end(), 0U);
  for (std::uint32_t i = 0; i < count; ++i)
    std::swap(drawn[i], drawn[i + random.below(population - i)]);
  drawn.resize(count);
}

/// A number to draw, and its weight.
struct Weighted {
  std::uint32_t number = 0;
  double weight = 1;

  bool operator==(const Weighted&) const = default;
};

/// The bounds of a weight.
inline constexpr double weight_min = 1e-6;
inline constexpr double weight_max = 1e6;

/// Refuses weights that draw_weighted() cannot take: numbers of `population` or above, numbers that
/// do not ascend, and weights that are not numbers from weight_min to weight_max. So no weight is
/// 0, and no number is left out of all draws.
[[nodiscard]] Result<void> check_weights(std::uint32_t population,
                                         std::span<const Weighted> weights);

/// Fills `drawn` with `count` different numbers of [0, population), which are drawn one after
/// another: each time, the chance of a number is its weight divided by the sum of the weights of
/// the numbers that are not drawn yet. The numbers that `weights` does not contain have weight 1.
/// The order in `drawn` is not random. Requires: count <= population,
/// check_weights(population, weights).
///
/// These successive draws have the same distribution as the `count` largest of the keys
/// u^(1 / weight) with independent uniform u, which are exponential keys (Efraimidis, Spirakis,
/// "Weighted random sampling with a reservoir", IPL 2006, algorithm A). They need O(count) random
/// numbers, and O(count * weights.size()) time however large the population is; the keys would
/// take O(population). If all weights are 1, this equals draw().
void draw_weighted(std::uint32_t population, std::uint32_t count, std::span<const Weighted> weights,
                   Random& random, std::vector<std::uint32_t>& drawn);

/// Returns the probability that `beta` workers drawn from `others` include no laggard, if `on_pace`
/// of the others are not laggards: C(on_pace, beta) / C(others, beta). Requires: beta <= others,
/// on_pace <= others.
[[nodiscard]] constexpr double pass_probability(std::uint64_t on_pace, std::uint64_t others,
                                                std::uint64_t beta) {
  if (beta > on_pace) return 0;
  double probability = 1;
  for (std::uint64_t i = 0; i < beta; ++i)
    probability *= static_cast<double>(on_pace - i) / static_cast<double>(others - i);
  return probability;
}

}  // namespace starling::barrier
