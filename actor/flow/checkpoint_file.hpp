/// The file of one part of a checkpoint: the bytes of its records in blocks, each with a checksum.
/// Blocking. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "starling/actor/flow/output_folder.hpp"
#include "starling/engine/flow/values/codec.hpp"

namespace starling::flow {

/// Writes a part into a file, which must outlive it. Throws TaskFailure if the file cannot be
/// written.
class CheckpointWriter {
 public:
  /// The checkpoint's `fingerprint` and the part's number go into the checksums, so that no file
  /// can take the place of another one.
  CheckpointWriter(PartFile& file, std::uint64_t fingerprint, Part part)
      : file_(file), fingerprint_(fingerprint), part_(part) {}

  /// A record is appended to this buffer; call end_record() after it.
  [[nodiscard]] Bytes& buffer() noexcept { return buffer_; }
  void end_record();
  /// Completes the file.
  void finish();
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void write_block();

  PartFile& file_;
  std::uint64_t fingerprint_;
  Part part_;
  Bytes buffer_;
  std::uint64_t block_records_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Reads a part from its first record to its last. Throws TaskFailure, with the file and the block,
/// if the file cannot be read, is damaged or ends too early.
class CheckpointReader {
 public:
  CheckpointReader(std::string path, std::uint64_t fingerprint, Part part);

  /// Reads the next record. Returns false after the last one.
  template <class T>
  [[nodiscard]] bool next(T& record) {
    if (records_left_ == 0 && !read_block()) return false;
    --records_left_;
    ++records_read_;
    try {
      get(bytes_left_, record);
    } catch (const DecodeError& error) {
      fail(error.what());
    }
    if (records_left_ == 0 && !bytes_left_.empty())
      fail("bytes are left over after the last record");
    return true;
  }
  /// Returns the file and the number, from 0, of the record that next() has read last.
  [[nodiscard]] std::string location() const;

 private:
  /// Reads a block with at least one record. Returns false at the end of the file.
  bool read_block();
  void read(std::span<std::byte> out);
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  std::uint64_t fingerprint_;
  Part part_;
  Descriptor file_;
  /// The bytes of the file that are still to be read.
  std::uint64_t file_left_ = 0;
  std::uint64_t records_read_ = 0;
  /// The number of the current block, and of the next one.
  std::uint64_t block_ = 0;
  std::uint64_t next_block_ = 0;
  Bytes buffer_;
  /// The number of records of the block that are still to be read, and their bytes.
  std::uint64_t records_left_ = 0;
  std::span<const std::byte> bytes_left_;
};

}  // namespace starling::flow
