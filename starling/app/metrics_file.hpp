/// The file of `--metrics`: complete lines, each on its way to the disk when append() returns. A
/// pipe or a device will do, too. One thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "starling/base/result.hpp"

namespace starling::app {

class MetricsFile {
 public:
  /// Refuses a path where no line can be written; leaves nothing behind.
  [[nodiscard]] static Result<void> check(const std::string& path);

  /// Goes on behind what the file holds where `keep`, else starts an empty one. An empty path
  /// writes nowhere. Waits for a pipe's reader.
  [[nodiscard]] static Result<MetricsFile> open(const std::string& path, bool keep);

  /// Adds a line. After an error the file ends with the last whole line, and stays so.
  [[nodiscard]] Result<void> append(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  /// Of a file of its own, what whole lines take.
  std::optional<long> size_;
};

}  // namespace starling::app
