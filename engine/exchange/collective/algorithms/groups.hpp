#pragma once

#include <algorithm>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/algorithms/binomial_tree.hpp"
#include "starling/engine/exchange/collective/algorithms/ring.hpp"

namespace starling::collective {

/// Groups of `size` neighbours, the last one perhaps smaller: each reduces to its first member
/// along a binomial tree, the first members all-reduce around a ring, and each group broadcasts.
/// For groups whose members are close to each other, such as the devices of one machine.
///   2 ceil(log2 size) + 2(n/size - 1) rounds.
/// Source: hierarchical all-reduce as in Jia et al. 2018, "Highly Scalable Deep Learning Training
/// System with Mixed-Precision" (arXiv 1807.11205), section 3.3.
struct Groups {
  static constexpr std::string_view name = "groups";
  static constexpr std::string_view form = "groups:4";
  static constexpr std::string_view summary =
      "reduce in groups, all-reduce among their first members, broadcast in groups";

  std::size_t size = 4;

  static Groups parse(SpecReader& reader) {
    const std::string text = reader.positional();
    if (text.empty()) return {};
    const auto size = parse_count(text, 1, UINT32_MAX);
    if (!size) reader.refuse("the size of groups: " + size.error().message);
    return {size ? static_cast<std::size_t>(*size) : 1};
  }
  [[nodiscard]] std::string options() const { return std::to_string(size); }

  [[nodiscard]] Result<void> check(std::size_t members) const {
    if (size <= members) return {};
    return Error{"groups of " + std::to_string(size) + " among " + print_count(members, "member") +
                 "; valid: groups of 1 to " + std::to_string(members)};
  }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank) const {
    const std::size_t groups = (n + size - 1) / size;
    Schedule schedule{.members = n, .ports = 1, .chunks = equal_chunks(groups), .rounds = {}};
    for (std::size_t first = 0; first < n; first += size) {
      const Schedule inner = BinomialTree{}.reduce(std::min(size, n - first), 0);
      if (schedule.rounds.size() < inner.rounds.size()) schedule.rounds.resize(inner.rounds.size());
      for (std::size_t r = 0; r < inner.rounds.size(); ++r)
        for (const Move& move : inner.rounds[r])
          for (ChunkId c = 0; c < groups; ++c)
            schedule.rounds[r].push_back({static_cast<Rank>(first + move.from),
                                          static_cast<Rank>(first + move.to), c,
                                          ReceiveAction::add});
    }
    for (Round round : Ring{}.reduce(groups, 0).rounds) {
      for (Move& move : round) {
        move.from = static_cast<Rank>(move.from * size);
        move.to = static_cast<Rank>(move.to * size);
      }
      schedule.rounds.push_back(std::move(round));
    }
    return schedule;
  }

  bool operator==(const Groups&) const = default;
};

}  // namespace starling::collective
