/// Interfaces to the memory that the tasks of a job may take, and to a place for the data that does
/// not fit into it. actor/flow implements them with files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace starling::flow {

/// A file for data that does not fit into memory. Many tasks may append at the same time. Removed
/// when its last owner is destroyed. All functions throw TaskFailure if the disk is full or broken.
/// Thread-safe.
class SpillFile {
 public:
  virtual ~SpillFile() = default;
  /// Appends bytes and returns the offset of the first.
  virtual std::uint64_t append(std::span<const std::byte> bytes) = 0;
  /// Reads `out.size()` bytes that append() has written at `offset`.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Frees the space of `size` bytes at `offset` if the implementation can. Requires: nobody reads
  /// these bytes any more.
  virtual void release(std::uint64_t offset, std::uint64_t size) noexcept = 0;
};

/// Memory that is counted against the limit, until the object is destroyed.
class Reservation {
 public:
  virtual ~Reservation() = default;
};

/// The memory limit of the tasks of a job, and the files to which they spill what exceeds it.
class TaskMemory {
 public:
  virtual ~TaskMemory() = default;
  /// Reserves memory for data that outlives its task. Returns null if the limit is reached; the
  /// data must then be spilled. Thread-safe.
  virtual std::unique_ptr<Reservation> reserve(std::size_t bytes) = 0;
  /// Creates an empty file, which takes no space on the disk until bytes are appended. Thread-safe.
  virtual std::shared_ptr<SpillFile> make_spill_file() = 0;
  /// Returns the most bytes of records that a task holds before it writes them as a run
  /// (shuffle/run.hpp). Independent of the number of threads, so that sums have the same order, and
  /// the same last bits, with any number of threads.
  [[nodiscard]] virtual std::size_t buffer_bytes() const = 0;
};

}  // namespace starling::flow
