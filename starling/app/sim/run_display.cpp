#include "starling/app/sim/run_display.hpp"

#include <fmt/format.h>

namespace starling::app {

double RunDisplay::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RunDisplay::show(double share) {
  constexpr double short_s = 1;  // what is over sooner needs no progress
  if (elapsed() < short_s) return;
  std::string line = fmt::format("{}  {:.0f} %  {:.0f} s", what_, 100 * share, elapsed());
  if (share > 0.01) line += fmt::format("  ETA {:.0f} s", elapsed() * (1 - share) / share);
  display_.show(line);
}

void RunDisplay::finish(const SimRuns& runs) {
  std::uint64_t updates = 0;
  for (const SimRun& run : runs) updates += run.updates;
  const double took = elapsed();
  display_.close();
  display_.begin(what_);
  display_.finish(fmt::format("{} run{}, {} updates in {:.1f} s, {:.2f} million updates/s",
                              runs.size(), runs.size() == 1 ? "" : "s", updates, took,
                              static_cast<double>(updates) / 1e6 / std::max(took, 1e-9)));
}

}  // namespace starling::app
