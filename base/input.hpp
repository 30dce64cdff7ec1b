/// Opens and reads the files that users name: decides which kinds of file are read, how much memory
/// their content may take, and when reading must stop. All readers of data, models, nets, jobs and
/// traces use it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "starling/base/result.hpp"

namespace starling {

/// Makes InputDescriptor::open() refuse a file from now on, by any path: the file with this device
/// and number, as stat() returns them. For files with secrets, because a node reads files that
/// clients name. Thread-safe.
void withhold_file(std::uint64_t device, std::uint64_t number);

/// Limits on the files that one thread reads.
struct ReadLimits {
  /// True to refuse pipes. Devices are always refused.
  bool refuses_pipes = false;
  /// Bytes of memory that the values of one reader may take. 0 stands for a third of the free
  /// memory, which leaves two thirds for the spare capacity of vectors and for a copy of the
  /// values.
  std::uint64_t memory_max = 0;
  /// Reading ends with an error once a stop is requested.
  std::stop_token stop{};
  /// Reading ends with an error after this time.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// While a ReadScope lives, its limits apply to everything that its thread reads, so that a user's
/// own readers need not pass them on. The innermost of nested scopes applies.
class ReadScope {
 public:
  explicit ReadScope(ReadLimits limits);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

  /// The limits that apply to this thread.
  [[nodiscard]] static const ReadLimits& limits() noexcept;

 private:
  ReadLimits limits_;
  /// The limits of the enclosing scope; null if there is none.
  const ReadLimits* outer_limits_;
};

/// Returns an Error if this thread must stop reading, because a stop was requested or the deadline
/// has passed.
[[nodiscard]] Result<void> check_reading(const std::string& path);

/// An open file. One thread at a time may use it. open() never waits; read() waits for the writer
/// of a pipe, but no longer than the thread's limits allow. Nothing can interrupt a read from a
/// disk or a network file system that hangs.
class InputDescriptor {
 public:
  /// Refuses folders, devices and sockets, and also pipes if the thread's limits do.
  static Result<InputDescriptor> open(const std::string& path);

  InputDescriptor(InputDescriptor&& other) noexcept;
  InputDescriptor& operator=(InputDescriptor&& other) noexcept;
  ~InputDescriptor();

  /// Reads some bytes into `out` and returns their number, which is 0 at the end of the file.
  /// Requires: `out` is not empty.
  Result<std::size_t> read(std::span<std::byte> out);

  /// The bytes that a regular file had when it was opened; nullopt for a pipe.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The system's number of the open file.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  InputDescriptor(int descriptor, std::string path) noexcept
      : descriptor_(descriptor), path_(std::move(path)) {}
  /// Refuses a file of a kind that the thread's limits exclude; sets `size_`.
  Result<void> check_kind();
  /// Waits until a pipe has bytes or has ended.
  Result<void> await_bytes();

  int descriptor_;
  std::string path_;
  std::optional<std::uint64_t> size_;
};

/// Returns the whole content of a text file. A file of more than `bytes_max` bytes is an Error,
/// whose message ends with "; valid: " and `valid` unless `valid` is empty.
[[nodiscard]] Result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                                            const std::string& valid = {});

/// Bounds the memory that the values of one source may take while they are read. The bound depends
/// on the free memory, so readers that run at the same time share it.
class ReadBudget {
 public:
  /// Errors begin with `source`, the path of a file or folder.
  explicit ReadBudget(std::string source) : source_(std::move(source)) {}

  /// Call before any memory is taken, if the size of all values is known. Refuses `bytes` above the
  /// bound.
  [[nodiscard]] Result<void> check_total(std::uint64_t bytes) const;
  /// Call while the values grow; `bytes` is their size so far. Refuses `bytes` above the bound.
  /// Cheap: computes the bound again only each time the values have grown by 64 MiB, or by a 16th
  /// of ReadLimits::memory_max if that is set and less.
  [[nodiscard]] Result<void> check_growth(std::uint64_t bytes) {
    return bytes < next_check_bytes_ ? Result<void>{} : check_bound(bytes);
  }

 private:
  Result<void> check_bound(std::uint64_t bytes);

  std::string source_;
  /// The size of the values, in bytes, at which check_growth() computes the bound again.
  std::uint64_t next_check_bytes_ = 0;
};

}  // namespace starling
