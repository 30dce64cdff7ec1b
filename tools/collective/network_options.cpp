#include "starling/tools/collective/network_options.hpp"

#include <array>
#include <chrono>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Returns bytes a second.
Result<double> parse_bandwidth(const std::string& text) {
  constexpr std::array<Unit, 9> units{{{"kbps", 125},
                                       {"Mbps", 125e3},
                                       {"Gbps", 125e6},
                                       {"Tbps", 125e9},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12},
                                       {"B", 1}}};
  return parse_amount(text, units, "bits or bytes a second above 0: 10Gbps, 20GB");
}

}  // namespace

Result<double> parse_amount(const std::string& text, std::span<const Unit> units,
                            const std::string& valid) {
  const auto amount = parse_units(text, units);
  if (amount && *amount >= 1e-3 && *amount <= 1e18) return *amount;
  return Error{quote(text) + "; valid: " + valid};
}

Result<double> parse_vector_bytes(const std::string& text) {
  constexpr std::array<Unit, 13> units{{{"KiB", 0x1p10},
                                        {"MiB", 0x1p20},
                                        {"GiB", 0x1p30},
                                        {"kB", 1e3},
                                        {"MB", 1e6},
                                        {"GB", 1e9},
                                        {"TB", 1e12},
                                        {"k", 1e3},
                                        {"M", 1e6},
                                        {"G", 1e9},
                                        {"T", 1e12},
                                        {"B", 1},
                                        {"", 1}}};
  return parse_amount(text, units, "bytes above 0, with a unit or not: 4096, 100M, 64MiB");
}

Result<void> put_network(collective::Network& network, const Settings& settings) {
  if (auto given = put(network.bytes_per_second, settings, "bandwidth", parse_bandwidth); !given)
    return given;
  std::chrono::nanoseconds latency{0};
  if (auto given = put(latency, settings, "latency", parse_duration); !given) return given;
  if (!text_of(settings, "latency").empty())
    network.latency_s = std::chrono::duration<double>(latency).count();
  return {};
}

}  // namespace starling::program
