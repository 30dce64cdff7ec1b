/// The options of commands that describe a network. Thread-safe.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/cost.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/program/byte_amount.hpp"

namespace starling::program {

/// Reads an amount from 1e-3 to 1e18 with one of the units, and returns the number times the size
/// of the unit. The error ends with `valid`.
[[nodiscard]] Result<double> parse_amount(const std::string& text, std::span<const Unit> units,
                                          const std::string& valid);

/// Reads the size of a vector, with a unit or not: 4096, 100M, 64MiB.
[[nodiscard]] Result<double> parse_vector_bytes(const std::string& text);

/// Reads the keys `latency`, a duration, and `bandwidth`, in bits or bytes a second.
[[nodiscard]] Result<void> put_network(collective::Network& network, const Settings& settings);

}  // namespace starling::program
