/// The file of `--metrics`: complete lines, each handed to the system when append() returns. A pipe
/// or a device will do, too. One thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

class MetricsFile {
 public:
  /// Refuses a path where no line can be written; leaves nothing behind.
  [[nodiscard]] static Result<void> check(const std::string& path);

  /// Appends to the file where `keep`, else empties it. An empty path writes nowhere. Waits for a
  /// pipe's reader.
  [[nodiscard]] static Result<MetricsFile> open(const std::string& path, bool keep);

  /// Adds a line. After an error the file ends with the last whole line, and stays so.
  [[nodiscard]] Result<void> append(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  /// The bytes of the whole lines so far; absent where the file is a stream.
  std::optional<long> size_;
};

}  // namespace starling::program
