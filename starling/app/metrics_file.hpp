/// The file of `--metrics`: complete lines, each on its way to the disk when append() returns. One
/// thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "starling/base/result.hpp"

namespace starling::app {

class MetricsFile {
 public:
  /// Starts an empty file; an empty path writes nowhere.
  static Result<MetricsFile> create(const std::string& path);

  /// Adds a line. After an error the file ends with the last whole line, and stays so.
  [[nodiscard]] Result<void> append(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  long size_ = 0;
};

}  // namespace starling::app
