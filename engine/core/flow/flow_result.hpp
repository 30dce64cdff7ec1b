/// The result of a flow, which a node sends to a client that asks for it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace starling::core {

struct FlowResult {
  /// True if the program of a member on the answering node has returned without an error. If it is
  /// false, the other fields have their default values.
  bool is_known = false;
  /// The number of lines of the whole result, one for each record.
  std::uint64_t lines = 0;
  /// The first lines of the result, up to a limit. Empty if the result was written to files.
  std::vector<std::string> first_lines;
  /// The figures that the program has added, as names and values.
  std::vector<std::pair<std::string, double>> figures;
  /// The time from the start to the return of the program on the answering node.
  double seconds = 0;
  /// An error message for each input file that was skipped. It names the file and the reason.
  std::vector<std::string> skipped;

  static constexpr auto fields(auto& m) {
    return std::tie(m.is_known, m.lines, m.first_lines, m.figures, m.seconds, m.skipped);
  }
};

}  // namespace starling::core
