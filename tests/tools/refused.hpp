/// Command lines that are refused because of the files that they name, as parameters of tests.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/program.hpp"

namespace starling::program {

struct Bad {
  std::string name;
  std::string line;
  /// Paths and contents of the files to write. A path that ends with / is a folder.
  std::vector<std::pair<std::string, std::string>> files;
  /// Texts that the error contains.
  std::vector<std::string> said;
};

inline void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.line; }

inline std::string name_of(const testing::TestParamInfo<Bad>& info) { return info.param.name; }

/// Runs the command line. Expects exit code 2, each text of `said` in the error, and no new files.
inline void expect_refused(const Bad& bad) {
  const Folder folder;
  for (const auto& [name, content] : bad.files) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    if (!name.ends_with('/')) folder.write(name, content);
  }
  const auto before = folder.names();
  const Ran ran = starling(folder, bad.line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.names(), before);
  for (const std::string& fragment : bad.said)
    EXPECT_NE(ran.err.find(fragment), std::string::npos) << fragment << "\nis not in\n" << ran.err;
}

}  // namespace starling::program
