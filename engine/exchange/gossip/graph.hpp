/// The graphs of gossip: to which worker a worker sends in a step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "starling/base/random.hpp"

namespace starling::core {

enum class GossipGraph : std::uint8_t {
  /// In step k, worker r of n sends to worker (r + 2^(k mod ceil(log2 n))) mod n. If n is a power
  /// of two and all workers make the same steps, log2 n steps average exactly (SGP,
  /// arXiv 1811.10792, appendix A).
  exponential,
  /// Each worker sends to the next one.
  ring,
  /// Each worker sends to one drawn uniformly from the others.
  random,
};
/// In the order of the enumerators; the first is the default.
inline constexpr std::array<std::string_view, 3> gossip_graphs{"exponential", "ring", "random"};

/// Returns nullopt for names that are not in gossip_graphs.
[[nodiscard]] std::optional<GossipGraph> parse_gossip_graph(std::string_view name);

/// Returns the index of the worker to which worker `self` of `workers` sends in a step. Requires:
/// workers >= 2, self < workers.
[[nodiscard]] std::size_t gossip_target(GossipGraph graph, std::size_t self, std::size_t workers,
                                        std::uint64_t step, Random& random);

}  // namespace starling::core
