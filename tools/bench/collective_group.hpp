/// Processes that run collectives among each other over TCP on the loopback, to measure them: the
/// caller's process is member 0, and each other member is a child process. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "starling/actor/fabric/provider.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::program {

/// The collectives that all members run, one after another: all-reduces of `elements` floats.
struct CollectiveRun {
  /// Requires: it passes collective::check().
  collective::Schedule schedule;
  std::size_t elements = 0;
  /// How many collectives are measured, at least 1. One more runs before them.
  std::size_t times = 1;
};

/// Runs all of `runs`, in this order, among `members` members. Returns for each run the mean wall
/// time of a collective at member 0, in seconds. Returns an Error if a process cannot be started,
/// if a member does not answer for a minute, or if a sum is wrong. Requires: the caller's process
/// has no other thread, because it forks; members >= 1.
/// With a provider, the members write long bodies into each other's memory.
[[nodiscard]] Result<std::vector<double>> run_collectives(
    std::size_t members, const std::vector<CollectiveRun>& runs,
    std::optional<fabric::Provider> provider = std::nullopt);

}  // namespace starling::program
