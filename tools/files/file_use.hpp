/// Which files a command reads and writes, so that none is lost to another. Asks the file system;
/// any thread.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// A file and where it was named: `--save`, `job.toml:3: data`. An empty path is no file.
struct FileUse {
  std::string place;
  std::string path;
};

/// Refuses an output that is one of `taken`, however either is written: by way of links or other
/// folders. Devices and pipes are free to all.
[[nodiscard]] Result<void> check_free(const FileUse& output, std::span<const FileUse> taken);

/// Reads a file that people write: more than 1 MiB is a mistake, such as the name of a data file.
/// `valid` says in errors what it should be.
[[nodiscard]] Result<std::string> small_file(const std::string& path, const std::string& valid);

}  // namespace starling::program
