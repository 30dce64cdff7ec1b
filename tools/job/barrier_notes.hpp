/// Notes about barriers that a job can have, but that may not do what the user expects.
#pragma once

#include <cstddef>
#include <span>

#include "starling/barrier/barrier.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Warns on stderr if the settings have a recheck policy but no barrier draws workers.
void warn_of_unused_recheck(std::span<const barrier::Barrier> barriers, const Settings& settings);

/// Prints a note on stderr for each barrier `quorum` with a share below 1 that still needs all the
/// workers that it sees. Requires: there is at least one worker.
void note_full_quorums(std::span<const barrier::Barrier> barriers, std::size_t workers,
                       const Settings& settings);

}  // namespace starling::program
