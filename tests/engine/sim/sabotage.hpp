/// How tests break cores from outside: they alter messages, and run seeds until a check fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "starling/engine/sim/chaos/chaos.hpp"

namespace starling::sim {

/// The message in a packet, as a T; nullptr where it holds another or none.
template <class T>
const T* peer_message(const core::Envelope& envelope) {
  return envelope.packet.payload ? std::get_if<T>(&**envelope.packet.payload) : nullptr;
}

/// Puts another message into the packet.
inline void replace(core::Envelope& envelope, core::PeerMessage peer_message) {
  envelope.packet.payload = std::make_shared<const core::PeerMessage>(std::move(peer_message));
}

/// Replaces a message by one without effect.
inline void blank(core::Envelope& envelope) { replace(envelope, core::EpochProbe{}); }

/// Runs seeds until one fails; how many it took, or nothing.
template <class Saboteur>
std::optional<std::uint64_t> found_after(std::uint64_t seeds, std::string_view expected) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Saboteur saboteur;
    const auto report = run_chaos(draw_scenario(seed), &saboteur);
    if (report.violation.empty()) continue;
    EXPECT_NE(report.violation.find(expected), std::string::npos) << report.violation;
    return seed + 1;
  }
  return std::nullopt;
}

}  // namespace starling::sim
