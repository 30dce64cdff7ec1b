/// Maps a file into memory: the system reads each page of it when the page is used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling {

/// The content of a regular file. The system may drop the parts that it has read, and read them
/// again, so the content may be larger than the memory. If another process cuts the file short, and
/// a part is used that is gone, this process writes a message to the standard error and exits with
/// code 1, because no thread could go on without the part. Immutable; thread-safe.
class MappedFile {
 public:
  /// Opens the same files as InputDescriptor::open(), but no pipes.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Asks the system to read `part` of bytes(), and does not wait for it.
  void will_need(std::span<const std::byte> part) const noexcept;

 private:
  MappedFile(std::span<const std::byte> bytes, std::string_view name);

  std::span<const std::byte> bytes_;
  /// The path, without control characters.
  std::string name_;
};

}  // namespace starling
