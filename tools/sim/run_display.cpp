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

double RunDisplay::elapsed() const { return seconds_since(start_); }

void RunDisplay::show(const PieceProgress& done) {
  constexpr double short_s = 1;  // shorter work needs no progress
  if (elapsed() < short_s) return;
  std::string line = fmt::format("{}  {:.0f} %  {:.0f} s", what_, 100 * done.share, elapsed());
  if (done.left_s) line += fmt::format("  ETA {:.0f} s", *done.left_s);
  display_.show(line);
}

void RunDisplay::show(double share) {
  PieceProgress done{share, std::nullopt};
  if (share > 0.01) done.left_s = elapsed() * (1 - share) / share;
  show(done);
}

void RunDisplay::finish(const SimRuns& runs) {
  std::uint64_t updates = 0;
  for (const SimRun& run : runs) updates += run.updates;
  const double took = elapsed();
  display_.close();
  display_.begin(what_);
  display_.finish(fmt::format("{}, {} updates in {:.1f} s, {}", counted(runs.size(), "run"),
                              updates, took,
                              rate_text(static_cast<double>(updates) / std::max(took, 1e-9))));
}

}  // namespace starling::program
