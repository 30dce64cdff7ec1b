/// The file of `--metrics`: complete lines, each of which is handed to the operating system before
/// append() returns. It may be a pipe or a device too. One thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

class MetricsFile {
 public:
  /// Refuses a path to which no line can be written. Leaves nothing behind.
  [[nodiscard]] static Result<void> check(const std::string& path);

  /// Opens the file to append to it if `keeps_content`, else empties it. With an empty path
  /// append() writes nothing. Waits for a pipe's reader.
  [[nodiscard]] static Result<MetricsFile> open(const std::string& path, bool keeps_content);

  /// Adds a line. After an error the file ends with the last whole line, and nothing more is
  /// written to it.
  [[nodiscard]] Result<void> append(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  /// The size of the whole lines so far, in bytes; absent if the file is a pipe or a device.
  std::optional<long> size_;
};

}  // namespace starling::program
