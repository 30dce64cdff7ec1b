/// Blocks: the form in which the records of a run (shuffle/run.hpp) are kept, as bytes, in memory
/// or in a file. Bytes take less memory than records, are read one after another, and are freed a
/// block at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/task_memory.hpp"
#include "starling/engine/flow/values/codec.hpp"

namespace starling::flow {

/// Blocks in a file that other objects may share. Frees the space of its blocks in the file when it
/// is destroyed or assigned to. The checksum of each block stays in memory, so that damage on the
/// disk is an error and never a wrong record. Thread-safe to read.
class SpilledBlocks {
 public:
  SpilledBlocks() = default;
  explicit SpilledBlocks(std::shared_ptr<SpillFile> file) : file_(std::move(file)) {}
  SpilledBlocks(SpilledBlocks&&) = default;
  SpilledBlocks& operator=(SpilledBlocks&& other) noexcept;
  ~SpilledBlocks() { release(); }

  void append(const Bytes& block);

  [[nodiscard]] std::size_t size() const noexcept { return blocks_.size(); }
  /// Returns the bytes of all blocks.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Reads block `i` into `block`. Throws TaskFailure if it is damaged.
  void read(std::size_t i, Bytes& block) const;

 private:
  struct BlockLocation {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::uint64_t checksum = 0;
  };

  void release() noexcept;

  std::shared_ptr<SpillFile> file_;
  std::vector<BlockLocation> blocks_;
};

/// The blocks of one run, in the order of the run. Each has the bytes of whole records. Either all
/// are in memory or all are spilled. Thread-safe to read.
struct Blocks {
  std::vector<Bytes> in_memory;
  /// The part of the job's memory limit that `in_memory` takes. Null if nothing is reserved: before
  /// make_run(), and if the blocks are spilled.
  std::shared_ptr<Reservation> memory;
  SpilledBlocks spilled;
};

/// Returns the number of bytes in blocks.
[[nodiscard]] std::size_t size_of(std::span<const Bytes> blocks);

/// Appends the bytes of a record to a block. If records of type R have no bytes, appends a 0 byte,
/// because BlockReader::next() returns an empty block only after the last one.
template <Record R>
void put_record(Bytes& block, const R& record) {
  put(block, record);
  if constexpr (detail::fixed_size<R>() == 0) block.push_back(std::byte{0});
}

namespace detail {

template <class Fields, class... Values, std::size_t... i>
void put_each(Bytes& block, std::index_sequence<i...>, const Values&... values) {
  (put<std::remove_cvref_t<std::tuple_element_t<i, Fields>>>(block, values), ...);
}

}  // namespace detail

/// Appends what put_record() appends for the record R{values...}.
template <Record R, class... Values>
void put_fields(Bytes& block, const Values&... values) {
  using Fields = decltype(fields_of(std::declval<R&>()));
  static_assert(std::tuple_size_v<Fields> == sizeof...(Values));
  detail::put_each<Fields>(block, std::index_sequence_for<Values...>{}, values...);
  if constexpr (detail::fixed_size<R>() == 0) block.push_back(std::byte{0});
}
/// Reads a record that put_record() has written, and removes its bytes.
template <Record R>
void get_record(std::span<const std::byte>& block, R& record) {
  get(block, record);
  if constexpr (detail::fixed_size<R>() == 0) {
    std::byte ignored{};
    detail::get_bytes(block, &ignored, 1);
  }
}

/// Collects the bytes of records into blocks of at least 64 KiB, except for the last. Not
/// thread-safe.
class BlockWriter {
 public:
  /// Keeps the blocks in memory, or with `file` writes each there once it is full.
  BlockWriter() = default;
  explicit BlockWriter(std::shared_ptr<SpillFile> file) : is_spilling_(true) {
    written_.spilled = SpilledBlocks{std::move(file)};
  }

  template <Record R>
  void add(const R& record) {
    put_record(buffer_, record);
    end_record();
  }
  /// Adds the record R{values...}. Returns the number of its bytes.
  template <Record R, class... Values>
  std::size_t add_fields(const Values&... values) {
    const std::size_t before = buffer_.size();
    put_fields<R>(buffer_, values...);
    const std::size_t size = buffer_.size() - before;
    end_record();
    return size;
  }
  /// Adds the bytes of a record.
  void add_bytes(std::span<const std::byte> record) {
    buffer_.insert(buffer_.end(), record.begin(), record.end());
    end_record();
  }
  /// Returns the blocks of the records that were added since the last call. A writer with a file
  /// must not be used afterwards, because the returned blocks take its file over.
  [[nodiscard]] Blocks finish();

 private:
  static constexpr std::size_t block_bytes_min = std::size_t{64} << 10U;

  void end_record() {
    if (buffer_.size() >= block_bytes_min) end_block();
  }
  void end_block();

  bool is_spilling_ = false;
  Blocks written_;
  Bytes buffer_;
};

/// Reads blocks in their order. Requires: the blocks outlive the reader. Not thread-safe.
class BlockReader {
 public:
  explicit BlockReader(const Blocks& blocks) : blocks_(blocks) {}

  /// Returns the bytes of the next block, valid until the next call; empty after the last. Throws
  /// TaskFailure if the block is damaged.
  [[nodiscard]] std::span<const std::byte> next();

 private:
  const Blocks& blocks_;
  std::size_t next_ = 0;
  /// The last block that was read from the file.
  Bytes buffer_;
};

}  // namespace starling::flow
