/// Opens and reads the files that users name: decides which kinds of file are read, how much memory
/// their content may take, and when reading ends. Every reader of data, models, nets, jobs and
/// traces reads through this.
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

/// Limits on the files that one thread reads.
struct ReadLimits {
  /// Whether pipes are refused. Devices always are.
  bool regular_only = false;
  /// Bytes of memory that one reader's values may take; 0: a third of the memory that is free, so
  /// that there is as much again for copies of them and for a vector that grows.
  std::uint64_t memory_max = 0;
  /// Reading ends with an error once a stop is requested.
  std::stop_token stop{};
  /// Reading ends with an error after this time.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Applies its limits to all that its thread reads while it lives, so that a user's own readers
/// need not pass them on, and cannot forget to. Scopes nest.
class ReadScope {
 public:
  explicit ReadScope(ReadLimits limits);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

  /// The limits that apply to this thread.
  [[nodiscard]] static const ReadLimits& limits() noexcept;

 private:
  ReadLimits own_;
  const ReadLimits* outer_;
};

/// Returns an Error where this thread must stop reading: a stop was requested, or its deadline has
/// passed.
[[nodiscard]] Result<void> check_reading(const std::string& path);

/// An open file, for one thread at a time. Opening never waits; reading waits for the writer of a
/// pipe, but no longer than the thread's limits allow. Nothing can interrupt a read from a disk or
/// a network file system that hangs.
class InputDescriptor {
 public:
  /// Refuses folders, devices, sockets, and pipes where the thread's limits refuse them.
  static Result<InputDescriptor> open(const std::string& path);

  InputDescriptor(InputDescriptor&& other) noexcept;
  InputDescriptor& operator=(InputDescriptor&& other) noexcept;
  ~InputDescriptor();

  /// Reads some bytes into `out` and returns their number, 0 at the end. Requires: `out` is not
  /// empty.
  Result<std::size_t> read(std::span<std::byte> out);

  /// Bytes of a regular file when it was opened; absent for a pipe.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  InputDescriptor(int descriptor, std::string path) noexcept
      : descriptor_(descriptor), path_(std::move(path)) {}
  Result<void> look();
  Result<void> await_bytes();

  int descriptor_;
  std::string path_;
  std::optional<std::uint64_t> size_;
};

/// Returns the whole content of a text file. More than `bytes_max` bytes are an Error, which ends
/// with "; valid: `valid`" unless `valid` is empty.
[[nodiscard]] Result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                                            const std::string& valid = {});

/// Bounds the memory that the values of one source may take while they are read. The bound follows
/// the free memory, so readers that run at the same time share it.
class ReadBudget {
 public:
  /// Errors name `place`, a file.
  explicit ReadBudget(std::string place) : place_(std::move(place)) {}

  /// Refuses `bytes` of values, known to be all of them, before any memory is taken.
  [[nodiscard]] Result<void> expect(std::uint64_t bytes) const;
  /// Refuses to hold `bytes` in all while the values grow. Cheap: looks at the free memory again
  /// only after each 64 MiB, or after each 16th of ReadLimits::memory_max where that is set and
  /// less.
  [[nodiscard]] Result<void> hold(std::uint64_t bytes) {
    return bytes < next_look_ ? Result<void>{} : look(bytes);
  }

 private:
  Result<void> look(std::uint64_t bytes);

  std::string place_;
  std::uint64_t next_look_ = 0;
};

}  // namespace starling
