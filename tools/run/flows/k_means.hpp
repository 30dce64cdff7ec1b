#pragma once

#include <cstdint>

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows/columns.hpp"

namespace starling::program {

/// Divides points into clusters by Lloyd's algorithm (1982). It begins with the centres of a file,
/// or with those that k-means++ (Arthur, Vassilvitskii 2007) draws from the points or from a sample
/// of them.
struct KMeans {
  static constexpr std::string_view name = "kmeans";
  static constexpr std::string_view summary = "divide points into clusters";

  std::uint64_t k = 8;
  std::uint64_t iterations = 100;
  std::uint64_t seed = 1;
  /// A file of the first centres, as lines like those of the points; empty to draw them.
  std::string centres;
  /// True if the result is the points with their clusters, not the centres.
  bool assigns = false;
  ColumnFlags columns;

  static std::vector<FlowOption> flow_options();
  static KMeans parse(SpecReader& options);
  /// Returns lines CLUSTER<TAB>POINTS<TAB>X1<TAB>X2..., or if `assigns` CLUSTER<TAB>LINE.
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
