/// Files in memory, for fuzzers of code that reads files by their paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {

/// A file in memory that has a path in /proc.
class MemoryFile {
 public:
  MemoryFile()
      : descriptor_(::memfd_create("fuzz", 0)),
        path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    require(descriptor_ >= 0, "a file in memory can be made");
  }
  /// Replaces the content of the file.
  void set_content(Input input) const {
    const auto size = static_cast<::ssize_t>(input.size());
    require(::ftruncate(descriptor_, 0) == 0 &&
                ::pwrite(descriptor_, input.data(), input.size(), 0) == size,
            "a file in memory is written");
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace starling::fuzz
