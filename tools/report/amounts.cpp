#include "starling/tools/report/amounts.hpp"

#include <fmt/format.h>

namespace starling::program {

std::string time_in_units(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.4g} ms", 1e3 * seconds);
  return seconds < 9999.5 ? fmt::format("{:.4g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string seconds_text(double seconds) {
  return seconds < 999.5 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string bytes_in_units(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.4g} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.4g} kB", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("{:.4g} MB", bytes / 1e6)
                     : fmt::format("{:.4g} GB", bytes / 1e9);
}

}  // namespace starling::program
