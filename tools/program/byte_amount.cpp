#include "starling/tools/program/byte_amount.hpp"

#include <array>
#include <cmath>

#include "starling/base/text.hpp"

namespace starling::program {

std::optional<double> parse_units(const std::string& text, std::span<const Unit> units) {
  for (const auto& [unit, size] : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number(std::string_view{text}.substr(0, text.size() - unit.size()));
    if (number && *number > 0) return *number * size;
  }
  return std::nullopt;
}

Result<std::uint64_t> parse_bytes(const std::string& text, const std::string& expected) {
  constexpr std::array<Unit, 8> units{{{"KiB", 0x1p10},
                                       {"MiB", 0x1p20},
                                       {"GiB", 0x1p30},
                                       {"TiB", 0x1p40},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12}}};
  const auto bytes = parse_units(text, units);
  // 32.3 * 1e3 is a little less than 32300.
  if (bytes && *bytes >= 1 && *bytes < 0x1p62)
    return static_cast<std::uint64_t>(std::round(*bytes));
  return Error{"'" + text + "' must be " + expected};
}

std::string print_bytes(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < units.size(); ++unit) amount /= 1024;
  return print_number(std::round(amount * 10) / 10) + " " + units[unit];
}

}  // namespace starling::program
