/// The options of `starling twin`: those of a training job, except the files that training writes
/// and resumes from, and the number of simulations.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// The default number of simulations.
inline constexpr std::uint64_t twin_seeds = 200;
/// The smallest number of simulations that the user may ask for. With fewer, the 0.5 % quantile
/// would be about the smallest value.
inline constexpr std::uint64_t twin_seeds_min = 100;

[[nodiscard]] const std::vector<KeyDescription>& twin_keys();

/// Returns the settings of the live run: all except `seeds` and the files that training writes.
[[nodiscard]] Settings live_settings(Settings settings);

/// Returns the settings of the simulations: all except those of learning, and except `epochs`,
/// because the simulations end like the live run.
[[nodiscard]] Settings sim_settings(Settings settings);

}  // namespace starling::program
