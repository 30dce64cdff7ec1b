/// Names the weights with which a sampled barrier draws workers. Plain values; thread-safe to read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::barrier {

/// The weights of a draw (sampling.hpp: draw_weighted). Workers that ask each other learn weights
/// from the answers that they get (engine/core/worker/draw_weights.hpp).
enum class Weighting : std::uint8_t {
  /// All other workers are equally likely to be drawn.
  uniform,
  /// The share of recent questions that a worker has answered in time, as in availability-weighted
  /// PSP (Behfar, Mortier, arXiv 2604.16090).
  availability,
  /// The steps per second that a worker has made, relative to the others.
  speed,
};

/// Reads `uniform`, `availability` or `speed`. Refuses other words, and suggests the nearest.
[[nodiscard]] Result<Weighting> parse_weighting(std::string_view text);

/// Returns text that parse_weighting() reads back.
[[nodiscard]] std::string print(Weighting weighting);

}  // namespace starling::barrier
