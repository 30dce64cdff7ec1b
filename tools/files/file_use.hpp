/// Checks that a command does not overwrite one of its own files with another. Asks the file
/// system. Any thread.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// A file that a command reads or writes. An empty path is no file.
struct FileUse {
  /// Where the file was named: `--save`, or `job.toml:3: data`.
  std::string location;
  std::string path;
};

/// Refuses an output that is the same file as one of `taken`, even if the paths differ because of
/// links or relative folders. Never refuses devices and pipes.
[[nodiscard]] Result<void> check_no_conflict(const FileUse& output, std::span<const FileUse> taken);

/// Reads a file that people write by hand. Refuses more than 1 MiB, because then the path probably
/// names something else, such as a data file. Errors say that `valid` is what the file should be.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path,
                                                  const std::string& valid);

}  // namespace starling::program
