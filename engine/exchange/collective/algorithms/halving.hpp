#pragma once

#include <bit>

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Recursive halving, and recursive doubling back. In each round, the members of a pair send each
/// other the halves with which the receiver goes on: at distance m/2, then m/4, ... until member c
/// has the sum of chunk c.
///   2 log2 n rounds and 2(n-1)/n of the vector per port, if n is a power of two.
/// Else the members beyond the largest power of two m < n first add their vectors to those of
/// members 0, 1, ..., and get the sums from them in the end: 2 more rounds, with the whole vector.
/// Source: Rabenseifner 2004, "Optimization of collective reduction operations"; Thakur et al.
/// 2005, section 4.5.
struct Halving {
  static constexpr std::string_view name = "halving";
  static constexpr std::string_view form = "halving";
  static constexpr std::string_view summary =
      "recursive halving and doubling; few rounds and fewest bytes for 2^k members";

  static Halving parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank) const {
    const auto m = static_cast<Rank>(std::bit_floor(n));
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(m), .rounds = {}};
    if (m < n) {
      Round& fold = schedule.rounds.emplace_back();
      for (Rank i = m; i < n; ++i)
        for (ChunkId c = 0; c < m; ++c) fold.push_back({i, i - m, c, ReceiveAction::add});
    }
    for (Rank distance = m / 2; distance > 0; distance /= 2) {
      Round& round = schedule.rounds.emplace_back();
      // A member still has the chunks whose bits above `distance` are its own. It keeps those with
      // its own bit `distance`, and sends the others.
      for (Rank i = 0; i < m; ++i)
        for (ChunkId c = 0; c < m; ++c)
          if ((i ^ c) / distance == 1) round.push_back({i, i ^ distance, c, ReceiveAction::add});
    }
    return schedule;
  }

  bool operator==(const Halving&) const = default;
};

}  // namespace starling::collective
