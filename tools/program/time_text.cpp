#include "starling/tools/program/time_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace starling::program {

std::string time_text(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const double rounded = std::round(std::min(seconds, 1e12));
  if (rounded < 120) return fmt::format("{:.0f} s", rounded);
  if (rounded < 7200)
    return fmt::format("{:.0f} min {:.0f} s", std::floor(rounded / 60), std::fmod(rounded, 60));
  return fmt::format("{:.0f} h {:.0f} min", std::floor(rounded / 3600),
                     std::floor(std::fmod(rounded, 3600) / 60));
}

}  // namespace starling::program
