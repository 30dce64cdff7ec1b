/// The file of `--metrics`, which grows by whole lines. append() hands a line to the operating
/// system before it returns. The file may also be a pipe or a device. Not thread-safe.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

class MetricsFile {
 public:
  /// Returns an Error if no line can be written to `path`. Leaves nothing behind.
  [[nodiscard]] static Result<void> check(const std::string& path);

  /// Opens the file; empties it unless `keeps_content`. If `path` is empty, append() writes
  /// nothing. If `path` is a named pipe, waits until a process reads it. If the file is a pipe, a
  /// device, or that of stdout or stderr, the process ignores SIGPIPE from then on.
  [[nodiscard]] static Result<MetricsFile> open(const std::string& path, bool keeps_content);

  /// Empties a regular file, unless it is that of stdout or stderr.
  void clear();

  /// Adds `line` and a newline. The first call ends a line that was left without its newline. After
  /// an error a regular file ends with its last whole line, and later calls write nothing.
  [[nodiscard]] Result<void> append(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  /// The size of the file before the last line, in bytes; absent if the file is a pipe, a device,
  /// or the file of stdout or stderr.
  std::optional<long> size_;
  /// True if the file ends with a line that lacks its newline.
  bool is_within_line_ = false;
};

}  // namespace starling::program
