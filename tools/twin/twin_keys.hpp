/// The keys of `starling twin`: those of a job, but for the files that training writes and resumes
/// from, and the number of simulations beside the live run.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// The number of simulations where none is given.
inline constexpr std::uint64_t twin_seeds = 200;
/// With fewer simulations, the 0.5 % quantile cannot be told from the smallest value.
inline constexpr std::uint64_t twin_seeds_min = 100;

[[nodiscard]] const std::vector<KeyForm>& twin_keys();

/// Returns the settings of the live run: all but a job file's outputs and `seeds`.
[[nodiscard]] Settings live_settings(Settings settings);

/// Returns the settings of the simulations: they learn nothing, and their end comes from the live
/// run.
[[nodiscard]] Settings sim_settings(Settings settings);

}  // namespace starling::program
