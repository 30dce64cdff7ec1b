/// Helpers for tests that write files and load them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "starling/models/data/load.hpp"
#include "tests/models/data/gzip.hpp"

namespace starling::models {

/// A folder for the files of one test. The destructor removes it with its files.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "starling-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  /// Writes `content` to the file `name` and returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    std::string path = (path_ / name).string();
    std::ofstream{path, std::ios::binary}.write(content.data(),
                                                static_cast<std::streamsize>(content.size()));
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Returns `text` with every `FILE` replaced by `path`.
inline std::string with_path(std::string text, const std::string& path) {
  for (std::size_t at = text.find("FILE"); at != std::string::npos;
       at = text.find("FILE", at + path.size()))
    text.replace(at, 4, path);
  return text;
}

/// Loads the data of a source such as `csv:FILE,label=first`.
inline Result<Table> load_text(const std::string& source, std::uint64_t seed = 1) {
  const auto parsed = Source::parse(source);
  if (!parsed) return parsed.error();
  return load(*parsed, seed);
}

inline std::string message_of(const Result<Table>& result) {
  return result ? "no error" : result.error().message;
}

}  // namespace starling::models
