#pragma once

#include <bit>

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// A binomial tree: counted from the root, the parent of member i is i without its lowest set bit.
/// If that is bit r, i sends in round r. A member receives from one child in each round.
///   2 ceil(log2 n) rounds, each with the whole vector: for short vectors.
/// Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
/// operations in MPICH", section 4.
struct BinomialTree {
  static constexpr std::string_view name = "tree";
  static constexpr std::string_view form = "tree";
  static constexpr std::string_view summary = "a binomial tree; fewest rounds, for short vectors";

  static BinomialTree parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank root) const {
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(1), .rounds = {}};
    schedule.rounds.resize(static_cast<std::size_t>(std::bit_width(n - 1)));
    for (std::size_t i = 1; i < n; ++i)
      schedule.rounds[static_cast<std::size_t>(std::countr_zero(i))].push_back(
          {static_cast<Rank>((i + root) % n), static_cast<Rank>(((i & (i - 1)) + root) % n), 0,
           ReceiveAction::add});
    return schedule;
  }

  bool operator==(const BinomialTree&) const = default;
};

}  // namespace starling::collective
