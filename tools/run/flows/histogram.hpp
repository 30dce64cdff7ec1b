#pragma once

#include <cstdint>

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows/columns.hpp"

namespace starling::program {

/// Counts the numbers of a column in bins of equal width. A bin contains its lower edge; the last
/// one contains its upper edge too.
struct Histogram {
  static constexpr std::string_view name = "histogram";
  static constexpr std::string_view summary = "count the numbers of a column in bins";

  std::uint64_t bins = 20;
  /// The edges of the first and the last bin; empty for the smallest and the largest number.
  std::string low;
  std::string high;
  /// A number from 1, or a name.
  std::string column = "1";
  ColumnFlags columns;

  static std::vector<FlowOption> flow_options();
  static Histogram parse(SpecReader& options);
  /// Returns lines FROM<TAB>TO<TAB>COUNT. The counts of numbers outside all bins are reported as
  /// `below` and `above`.
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
