/// Reads and prints amounts of bytes as users write them. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// Parses a number of bytes with its unit, like 512MiB. An Error says that the text must be
/// `expected`.
[[nodiscard]] Result<std::uint64_t> parse_bytes(const std::string& text,
                                                const std::string& expected);

/// Prints bytes in the largest unit in which the number is at least 1: "1.5 GiB".
[[nodiscard]] std::string print_bytes(std::uint64_t bytes);

}  // namespace starling::program
