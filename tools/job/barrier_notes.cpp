#include "starling/tools/job/barrier_notes.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "starling/base/text.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {

void warn_of_unused_recheck(std::span<const barrier::Barrier> barriers, const Settings& settings) {
  const std::string location = location_of(settings, "recheck");
  if (location.empty() ||
      std::ranges::any_of(barriers, [](const auto& b) { return barrier::is_sampled(b); }))
    return;
  std::string names;
  for (const auto& barrier : barriers) names += (names.empty() ? "" : ", ") + print(barrier);
  print_error(location + ": has no effect under " + names +
              (barriers.size() == 1 ? ", which draws no workers" : ", which draw no workers"));
}

void note_full_quorums(std::span<const barrier::Barrier> barriers, std::size_t workers,
                       const Settings& settings) {
  for (const auto& barrier : barriers) {
    const auto* quorum = std::get_if<barrier::Quorum>(&barrier.rule);
    const std::size_t seen = barrier::seen_workers(barrier, workers - 1) + 1;
    if (quorum == nullptr || quorum->share >= 1 || seen == 1 ||
        quorum->needed(seen) < static_cast<std::ptrdiff_t>(seen))
      continue;
    const double smaller_share = 1 - 1 / static_cast<double>(seen);
    print_error(location_of(settings, "barrier") + ": " + print(barrier) + " waits for all " +
                std::to_string(seen) + " workers" + (barrier.sample ? " that it sees" : "") +
                ", as " + print(barrier::Barrier{barrier::Bsp{}, barrier.sample}) +
                " does; a q of " + print_number(std::floor(100 * smaller_share) / 100) +
                " or less waits for fewer");
  }
}

}  // namespace starling::program
