/// The memory and the disk that the tasks of an engine may take. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "starling/engine/flow/plan/task_memory.hpp"

namespace starling::flow {

/// Spills to files in a folder. A file has no name once it is open, so the system removes it even
/// if the process is killed.
class SpillFolder : public TaskMemory, public std::enable_shared_from_this<SpillFolder> {
 public:
  /// `memory_max` and `disk_max` are in bytes.
  SpillFolder(std::string path, std::size_t memory_max, std::uint64_t disk_max)
      : path_(std::move(path)), memory_max_(memory_max), disk_max_(disk_max) {}

  std::unique_ptr<Reservation> reserve(std::size_t bytes) override;
  std::shared_ptr<SpillFile> make_spill_file() override;
  /// A 64th of the memory, so that the buffers of up to 32 threads take half of it.
  [[nodiscard]] std::size_t buffer_bytes() const override { return memory_max_ / 64; }

  /// The bytes of memory that are reserved now, and the bytes of disk that files take now.
  [[nodiscard]] std::size_t memory_used() const { return memory_used_; }
  [[nodiscard]] std::uint64_t disk_used() const { return disk_used_; }
  /// The bytes that were written to all files.
  [[nodiscard]] std::uint64_t spilled() const { return spilled_; }

 private:
  class File;
  class MemoryReservation;

  const std::string path_;
  const std::size_t memory_max_;
  const std::uint64_t disk_max_;
  std::atomic<std::size_t> memory_used_ = 0;
  std::atomic<std::uint64_t> disk_used_ = 0;
  std::atomic<std::uint64_t> spilled_ = 0;
};

}  // namespace starling::flow
