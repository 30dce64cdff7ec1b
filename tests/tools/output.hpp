/// Helpers to check the output of programs in tests.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace starling::program {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns the lines of `text`, without their line ends.
inline std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

}  // namespace starling::program
