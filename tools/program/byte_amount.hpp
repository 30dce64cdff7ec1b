/// Reads and prints amounts of bytes as users write them. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "starling/base/result.hpp"

namespace starling::program {

/// A unit of an amount, and its size.
using Unit = std::pair<std::string_view, double>;

/// Reads a number above 0 with one of the units, and returns the number times the size of the unit.
/// Tries the units in their order: the first with which the text ends after such a number counts.
/// Returns nullopt if there is none.
[[nodiscard]] std::optional<double> parse_units(const std::string& text,
                                                std::span<const Unit> units);

/// Parses a number of bytes with its unit, like 512MiB. An Error says that the text must be
/// `expected`.
[[nodiscard]] Result<std::uint64_t> parse_bytes(const std::string& text,
                                                const std::string& expected);

/// Prints bytes in the largest unit in which the number is at least 1: "1.5 GiB".
[[nodiscard]] std::string print_bytes(std::uint64_t bytes);

}  // namespace starling::program
