/// Helpers of tests that make cores appear broken by changing their messages, and that run seeds
/// until the checker finds a violation.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "starling/base/text.hpp"
#include "starling/engine/sim/chaos/chaos.hpp"

namespace starling::sim {

/// Returns the message in a packet if it is a T, else nullptr.
template <class T>
const T* payload_as(const core::Envelope& envelope) {
  return envelope.packet.payload ? std::get_if<T>(&**envelope.packet.payload) : nullptr;
}

/// Replaces the message in a packet.
inline void replace_payload(core::Envelope& envelope, core::PeerMessage peer_message) {
  envelope.packet.payload = std::make_shared<const core::PeerMessage>(std::move(peer_message));
}

/// Replaces the message in a packet by one without effect.
inline void replace_by_probe(core::Envelope& envelope) {
  replace_payload(envelope, core::EpochProbe{});
}

/// Runs seeds, from `first` on, until the checker finds a violation, but only those whose exchange
/// contains the text `exchange`. Returns the number of seeds tried, or nullopt if no seed violates
/// an invariant. Expects that the violation contains one of the texts in `expected`, which `|`
/// separates.
template <class Saboteur>
std::optional<std::uint64_t> seeds_until_found(std::uint64_t seeds, std::string_view expected,
                                               std::uint64_t first = 0,
                                               std::string_view exchange = {}) {
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    if (scenario.exchange.find(exchange) == std::string::npos) continue;
    Saboteur saboteur;
    const auto report = run_chaos(scenario, &saboteur);
    if (report.violation.empty()) continue;
    EXPECT_TRUE(std::ranges::any_of(split(expected, '|'), [&](std::string_view text) {
      return report.violation.find(text) != std::string::npos;
    })) << report.violation;
    return seed - first + 1;
  }
  return std::nullopt;
}

}  // namespace starling::sim
