/// Command lines with mistakes, as parameters of tests. `starling` must refuse each of them before
/// it starts anything.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/tools/program.hpp"

namespace starling::program {

/// A command line of `starling` with a mistake.
struct BadLine {
  /// The end of the test's name.
  std::string name;
  std::string line;
  /// Texts that the error message contains.
  std::vector<std::string> error_parts;
  /// The content of the file job.toml; empty if the test writes no such file. Some lines name the
  /// file as a job, and some as data.
  std::string job_toml = {};
};

inline void PrintTo(const BadLine& bad, std::ostream* out) { *out << bad.line; }

/// bad_input_test.cpp defines the test; each file instantiates it with its own command lines.
class BadInput : public testing::TestWithParam<BadLine> {};

inline std::string name_of(const testing::TestParamInfo<BadLine>& info) { return info.param.name; }

}  // namespace starling::program
