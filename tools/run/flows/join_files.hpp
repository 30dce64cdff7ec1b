#pragma once

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows/columns.hpp"

namespace starling::program {

/// Joins the rows of two tables whose key columns are equal.
struct JoinFiles {
  static constexpr std::string_view name = "join";
  static constexpr std::string_view summary = "join the rows of two tables by a column";

  enum class Kind { inner, left, full };

  /// The files of the right table; those of the left one are the inputs.
  std::vector<std::string> right;
  Kind kind = Kind::inner;
  /// The key columns of the left and of the right table: numbers from 1, or names.
  std::string column = "1";
  std::string right_column;
  ColumnFlags columns;

  static std::vector<FlowOption> flow_options();
  static JoinFiles parse(SpecReader& options);
  /// Returns lines of the key, the other columns on the left, and the other columns on the right.
  /// Columns of a side without a row are empty.
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
