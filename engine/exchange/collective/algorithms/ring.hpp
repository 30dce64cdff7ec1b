#pragma once

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Each member sends to the next one only. Chunk c starts at member c + 1, goes around the ring and
/// grows to the sum, which is complete at member c.
///   2(n-1) rounds, 2(n-1)/n of the vector per port: no algorithm needs fewer bytes.
/// Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations".
struct Ring {
  static constexpr std::string_view name = "ring";
  static constexpr std::string_view form = "ring";
  static constexpr std::string_view summary = "each to the next one; fewest bytes, many rounds";

  static Ring parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank) const {
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(n), .rounds = {}};
    for (std::size_t r = 0; r + 1 < n; ++r) {
      Round& round = schedule.rounds.emplace_back();
      for (std::size_t c = 0; c < n; ++c)
        round.push_back({static_cast<Rank>((c + 1 + r) % n), static_cast<Rank>((c + 2 + r) % n),
                         static_cast<ChunkId>(c), ReceiveAction::add});
    }
    return schedule;
  }

  bool operator==(const Ring&) const = default;
};

}  // namespace starling::collective
