/// Prints durations. Pure function; thread-safe.
#pragma once

#include <string>

namespace starling::program {

/// Returns a text like "9.9 s", "12 s", "3 min 20 s" or "5 h 10 min".
[[nodiscard]] std::string time_text(double seconds);

}  // namespace starling::program
