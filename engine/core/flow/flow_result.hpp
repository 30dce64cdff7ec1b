/// The result of a flow, for the client that follows it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace starling::core {

struct FlowResult {
  /// False if the program has not returned on the node that was asked, or has failed; the other
  /// fields are empty then.
  bool is_known = false;
  std::uint64_t lines = 0;
  /// The first lines, if they were not written to files.
  std::vector<std::string> first_lines;
  /// Numbers that the flow has found, by name.
  std::vector<std::pair<std::string, double>> figures;
  /// The time that the program took.
  double seconds = 0;
  /// The reasons why files were skipped, each of which begins with a file's path.
  std::vector<std::string> skipped;

  static constexpr auto fields(auto& m) {
    return std::tie(m.is_known, m.lines, m.first_lines, m.figures, m.seconds, m.skipped);
  }
};

}  // namespace starling::core
