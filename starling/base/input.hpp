/// Opening and reading files that somebody named: which kinds are read, how much memory their
/// content may take, and when reading ends. Every reader of data, models, nets, jobs and traces
/// reads through this.
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
  /// Reading ends with an error once this was asked.
  std::stop_token stop{};
  /// And at this time.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// While one lives, its limits hold for what its thread reads. A user's own readers need not hand
/// them on, and cannot forget to. Scopes nest.
class ReadScope {
 public:
  explicit ReadScope(ReadLimits limits);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

  /// This thread's.
  [[nodiscard]] static const ReadLimits& limits() noexcept;

 private:
  ReadLimits own_;
  const ReadLimits* outer_;
};

/// An Error where this thread is to read no more.
[[nodiscard]] Result<void> check_reading(const std::string& path);

/// An open file. One thread at a time. Opening never waits; reading waits for the writer of a pipe,
/// but no longer than the thread's limits say. A read from a disk or a network file system that
/// hangs cannot be interrupted by anybody.
class InputDescriptor {
 public:
  /// Refuses folders, devices, sockets, and pipes where the thread's limits do.
  static Result<InputDescriptor> open(const std::string& path);

  InputDescriptor(InputDescriptor&& other) noexcept;
  InputDescriptor& operator=(InputDescriptor&& other) noexcept;
  ~InputDescriptor();

  /// Some bytes into `out`, 0 at the end. Requires: `out` is not empty.
  Result<std::size_t> read(std::span<std::byte> out);

  /// Bytes of a regular file when it was opened, nothing for a pipe.
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

/// All of a file of text; more than `bytes_max` is an Error that ends with "; valid: `valid`" where
/// that is not empty.
[[nodiscard]] Result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                                            const std::string& valid = {});

/// The memory that the values of one source may take while they are read. The bound follows the
/// memory that is free, so readers beside one another share it.
class ReadBudget {
 public:
  /// `place` is what errors name: a file.
  explicit ReadBudget(std::string place) : place_(std::move(place)) {}

  /// Before anything is taken: refuses `bytes` of values, which are known to be all.
  [[nodiscard]] Result<void> expect(std::uint64_t bytes) const;
  /// While it grows: refuses to hold `bytes` in all. Cheap: looks again whenever 64 MiB were added.
  [[nodiscard]] Result<void> hold(std::uint64_t bytes) {
    return bytes < next_look_ ? Result<void>{} : look(bytes);
  }

 private:
  Result<void> look(std::uint64_t bytes);

  std::string place_;
  std::uint64_t next_look_ = 0;
};

}  // namespace starling
