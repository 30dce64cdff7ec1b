/// Blocks: the form in which records are spilled. The list of a run's blocks stays in memory, with
/// a checksum of each, so that damage on the disk is an error and never a wrong record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starling/engine/flow/plan/storage.hpp"
#include "starling/engine/flow/values/codec.hpp"

namespace starling::flow {

/// Where bytes of whole records lie in a file.
struct Block {
  std::uint64_t offset = 0;
  std::size_t size = 0;
  std::uint64_t checksum = 0;
};

/// The blocks of one run, in its order. Plain values; thread-safe to read.
struct SpilledBlocks {
  std::shared_ptr<SpillFile> file;
  std::vector<Block> blocks;
};

/// Collects the bytes of records into blocks of at least 64 KiB, except for the last. Not
/// thread-safe.
class BlockWriter {
 public:
  explicit BlockWriter(std::shared_ptr<SpillFile> file) : written_{std::move(file), {}} {}

  /// Records are appended to this buffer; call end_record() after each.
  [[nodiscard]] Bytes& buffer() noexcept { return buffer_; }
  void end_record();
  [[nodiscard]] SpilledBlocks finish();

 private:
  void write_block();

  SpilledBlocks written_;
  Bytes buffer_;
};

/// Requires: the blocks outlive the reader. Not thread-safe.
class BlockReader {
 public:
  explicit BlockReader(const SpilledBlocks& spilled) : spilled_(spilled) {}

  /// Returns the bytes of the next block, valid until the next call; empty after the last. Throws
  /// TaskFailure if the block is damaged.
  [[nodiscard]] std::span<const std::byte> next();

 private:
  const SpilledBlocks& spilled_;
  std::size_t next_ = 0;
  Bytes buffer_;
};

}  // namespace starling::flow
