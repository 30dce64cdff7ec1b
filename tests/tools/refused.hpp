/// Command lines that are refused because of the files that they name, as parameters of tests.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/program.hpp"

namespace starling::program {

struct RefusedLine {
  /// The end of the test's name.
  std::string name;
  std::string line;
  /// Paths and contents of the files to write. A path that ends with / is a folder.
  std::vector<std::pair<std::string, std::string>> files;
  /// Texts that the error message contains.
  std::vector<std::string> error_parts;
};

inline void PrintTo(const RefusedLine& refused, std::ostream* out) { *out << refused.line; }

inline std::string name_of(const testing::TestParamInfo<RefusedLine>& info) {
  return info.param.name;
}

/// Writes the files into a new folder and runs the command line there. Expects exit code 2, each
/// text of `error_parts` in the error message, no output and no new files.
inline void expect_refused(const RefusedLine& refused) {
  const Folder folder;
  for (const auto& [name, content] : refused.files) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    if (!name.ends_with('/')) folder.write(name, content);
  }
  const auto before = folder.names();
  const ProgramResult ran = starling(folder, refused.line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.names(), before);
  for (const std::string& part : refused.error_parts)
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\nis not in\n" << ran.err;
}

}  // namespace starling::program
