/// What `starling twin` can be told: what a job can, but for the files that training writes and
/// goes on from, and how many simulations stand beside the live run.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/app/keys.hpp"
#include "starling/app/settings.hpp"

namespace starling::app {

/// Simulations where no number is given.
inline constexpr std::uint64_t twin_seeds = 200;
/// Of fewer, no quantile of 0.5 % can be told from the smallest.
inline constexpr std::uint64_t twin_seeds_min = 100;

[[nodiscard]] const std::vector<KeyForm>& twin_keys();

/// What the live run is told: a job file's outputs are left alone.
[[nodiscard]] Settings live_settings(Settings settings);

/// What the simulations are told: they learn nothing, and have their end from the live
/// run.
[[nodiscard]] Settings sim_settings(Settings settings);

}  // namespace starling::app
