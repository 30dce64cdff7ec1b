#pragma once

#include <cstdint>

#include "starling/tools/registry/flow.hpp"

namespace starling::program {

/// Counts words: runs of ASCII letters, digits and any bytes that are not ASCII, so that UTF-8
/// words stay whole.
struct WordCount {
  static constexpr std::string_view name = "wordcount";
  static constexpr std::string_view summary = "count words, the most frequent first";

  /// The most lines of the result; 0 for all.
  std::uint64_t top = 0;
  bool ignores_case = false;
  /// True if words end only at spaces, so that punctuation belongs to them.
  bool splits_at_spaces = false;

  static std::vector<FlowOption> flow_options();
  static WordCount parse(SpecReader& options);
  /// Returns lines WORD<TAB>COUNT; words of equal count are sorted by their bytes.
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const;
};

}  // namespace starling::program
