/// Checks that no two files of a command are the same file, so that one does not overwrite another.
/// Reads the file system. Thread-safe.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// A file that a command reads or writes. An empty path stands for no file.
struct FileUse {
  /// The flag or the line that names the file: `--save`, or `job.toml:3: data`.
  std::string location;
  std::string path;
};

/// Returns an Error if `output` is the same file as one of `taken`, even if the paths differ
/// because of links or relative folders, or if it is in a subfolder of one of `taken`: a
/// folder of images has a subfolder for each class. Two uses of one device or pipe are no conflict.
[[nodiscard]] Result<void> check_no_conflict(const FileUse& output, std::span<const FileUse> taken);

/// Reads a file that people write by hand. Returns an Error for a file of more than 1 MiB, because
/// the path then probably names something else, such as a data file. `valid`, such as "a job file
/// of `key = value` lines", says in errors which file was expected.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path,
                                                  const std::string& valid);

}  // namespace starling::program
