#pragma once

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows/columns.hpp"

namespace starling::program {

/// Sorts lines by their bytes, or by a column as text or as a number. The sort is stable.
struct SortLines {
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view summary = "sort lines, whole or by a column";

  /// A number from 1, or a name. Empty: the whole line, or column 1 if `is_numeric`.
  std::string column;
  bool is_numeric = false;
  bool is_descending = false;
  ColumnFlags columns;

  static std::vector<FlowOption> flow_options();
  static SortLines parse(SpecReader& options);
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
