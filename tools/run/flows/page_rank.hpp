#pragma once

#include <cstdint>

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows/columns.hpp"

namespace starling::program {

/// Ranks the nodes of a graph (Page, Brin, Motwani, Winograd 1999): with damping d and n nodes,
///
///     rank(v) = (1 - d) / n + d (sum over links u -> v of rank(u) / links of u + dangling / n)
///
/// where `links of u` is their number, and `dangling` is the sum of the ranks of dangling nodes,
/// those without links; because of this term the ranks sum to 1.
struct PageRank {
  static constexpr std::string_view name = "pagerank";
  static constexpr std::string_view summary = "rank the nodes of a graph of links";

  double damping = 0.85;
  std::uint64_t iterations = 20;
  /// The iterations end early once the sum of all changes of ranks is below this; 0 for never.
  double tolerance = 0;
  /// The most lines of the result; 0 for all.
  std::uint64_t top = 0;
  ColumnFlags columns;

  static std::vector<FlowOption> flow_options();
  static PageRank parse(SpecReader& options);
  /// Returns lines NODE<TAB>RANK, the highest rank first; nodes of equal rank are sorted by name.
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
