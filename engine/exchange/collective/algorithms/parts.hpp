#pragma once

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Part-reduce and part-broadcast: everyone sends part c to member c, which sums it and sends the
/// sum to everyone. A parameter server with one shard at each member exchanges the same messages.
///   2 rounds of n-1 messages a member, 2(n-1)/n of the vector per port.
/// Source: Das et al. 2016, "Distributed Deep Learning Using Synchronous Stochastic Gradient
/// Descent" (PCL-DNN, arXiv 1602.06709), section 3.
struct Parts {
  static constexpr std::string_view name = "parts";
  static constexpr std::string_view form = "parts";
  static constexpr std::string_view summary = "part c to member c, and its sum back to all";

  static Parts parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank) const {
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(n), .rounds = {}};
    if (n == 1) return schedule;
    Round& round = schedule.rounds.emplace_back();
    // The order differs from part to part, so that not all members send to the same one first.
    for (ChunkId c = 0; c < n; ++c)
      for (Rank k = 1; k < n; ++k)
        round.push_back({static_cast<Rank>((c + k) % n), c, c, ReceiveAction::add});
    return schedule;
  }

  bool operator==(const Parts&) const = default;
};

}  // namespace starling::collective
