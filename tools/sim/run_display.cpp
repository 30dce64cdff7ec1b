#include "starling/tools/sim/run_display.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"

namespace starling::program {

std::string rate_text(double updates_per_s) {
  if (updates_per_s >= 1e6) return fmt::format("{:.2f} million updates/s", updates_per_s / 1e6);
  return fmt::format("{:.{}f} updates/s", updates_per_s, updates_per_s < 10 ? 2 : 0);
}

double RunDisplay::elapsed_s() const { return seconds_since(started_at_); }

void RunDisplay::show(const OverallProgress& progress) {
  constexpr double silent_s = 1;
  if (elapsed_s() < silent_s) return;
  std::string line =
      fmt::format("{}  {:.0f} %  {:.0f} s", activity_, 100 * progress.share, elapsed_s());
  if (progress.remaining_s) line += fmt::format("  ETA {:.0f} s", *progress.remaining_s);
  display_.show(line);
}

void RunDisplay::show(double share) {
  OverallProgress progress{share, std::nullopt};
  if (share > 0.01) progress.remaining_s = elapsed_s() * (1 - share) / share;
  show(progress);
}

void RunDisplay::finish(const SimRuns& runs) {
  std::uint64_t updates = 0;
  for (const SimRun& run : runs) updates += run.updates;
  const double took_s = elapsed_s();
  display_.close();
  display_.begin(activity_);
  display_.finish(fmt::format("{}, {} updates in {:.1f} s, {}", print_count(runs.size(), "run"),
                              updates, took_s,
                              rate_text(static_cast<double>(updates) / std::max(took_s, 1e-9))));
}

}  // namespace starling::program
