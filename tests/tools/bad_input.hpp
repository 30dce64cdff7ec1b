/// Command lines with mistakes, as parameters of tests: they are refused before anything is
/// started.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/tools/program.hpp"

namespace starling::program {

/// A command line with a mistake.
struct BadLine {
  std::string name;
  std::string line;
  /// Texts that the error contains.
  std::vector<std::string> said;
  /// The content of job.toml, if any.
  std::string job = {};
};

inline void PrintTo(const BadLine& bad, std::ostream* out) { *out << bad.line; }

class BadInput : public testing::TestWithParam<BadLine> {};

inline std::string name_of(const testing::TestParamInfo<BadLine>& info) { return info.param.name; }

}  // namespace starling::program
