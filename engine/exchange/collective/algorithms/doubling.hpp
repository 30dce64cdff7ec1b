#pragma once

#include <bit>

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Recursive doubling: in each round, pairs of members exchange their sums: at distance 1, then 2,
/// 4, ... Both add the same two numbers, so all members end with the same bits; but if both
/// numbers are NaNs, each keeps its own.
///   log2 n rounds and log2 n times the vector a port, if n is a power of two.
/// Else the members beyond the largest power of two m < n first add their vectors to those of
/// members 0, 1, ..., and get the sums from them in the end: 2 more rounds.
/// Source: Thakur et al. 2005, "Optimization of collective communication operations in MPICH",
/// section 4.5.
struct Doubling {
  static constexpr std::string_view name = "doubling";
  static constexpr std::string_view form = "doubling";
  static constexpr std::string_view summary =
      "recursive doubling; fewest rounds, and in each the whole vector";

  static Doubling parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule all_reduce(std::size_t n) const {
    const auto m = static_cast<Rank>(std::bit_floor(n));
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(1), .rounds = {}};
    if (m < n) {
      Round& fold = schedule.rounds.emplace_back();
      for (Rank i = m; i < n; ++i) fold.push_back({i, i - m, 0, ReceiveAction::add});
    }
    for (Rank distance = 1; distance < m; distance *= 2) {
      Round& round = schedule.rounds.emplace_back();
      for (Rank i = 0; i < m; ++i) round.push_back({i, i ^ distance, 0, ReceiveAction::add});
    }
    if (m < n) {
      Round& back = schedule.rounds.emplace_back();
      for (Rank i = m; i < n; ++i) back.push_back({i - m, i, 0, ReceiveAction::copy});
    }
    return schedule;
  }

  bool operator==(const Doubling&) const = default;
};

}  // namespace starling::collective
