/// Prints times and amounts of bytes with three or four digits and a unit. Pure functions; any
/// thread.
#pragma once

#include <string>

namespace starling::program {

/// Prints seconds: "12.5 us", "3 ms", "1.25 s".
[[nodiscard]] std::string time_in_units(double seconds);
/// Prints seconds with three digits, or from 1000 s on as a whole number: "0.7 s", "1800 s".
[[nodiscard]] std::string seconds_text(double seconds);
/// Prints bytes: "512 B", "1.25 MB".
[[nodiscard]] std::string bytes_in_units(double bytes);

}  // namespace starling::program
