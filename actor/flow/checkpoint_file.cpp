#include "starling/actor/flow/checkpoint_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

constexpr std::size_t block_bytes_min = std::size_t{64} << 10U;
/// A block also ends after this many records, because records that take no bytes never fill one.
constexpr std::uint64_t block_records_max = std::uint64_t{1} << 20U;
/// The most bytes of one read().
constexpr std::size_t read_bytes_max = std::size_t{1} << 30U;

/// Stands before the bytes of each block. The last block has no bytes and no records.
struct BlockHeader {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t checksum = 0;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t checksum_of(std::uint64_t fingerprint, Part part, std::uint64_t block,
                          std::uint64_t records, std::span<const std::byte> bytes) {
  std::uint64_t sum = fingerprint;
  for (const std::uint64_t number : {std::uint64_t{part}, block, records}) sum = mix(sum ^ number);
  return mix(sum ^ hash_bytes(as_text(bytes)));
}

}  // namespace

void CheckpointWriter::end_record() {
  ++block_records_;
  if (buffer_.size() >= block_bytes_min || block_records_ >= block_records_max) write_block();
}

void CheckpointWriter::write_block() {
  const BlockHeader header{buffer_.size(), block_records_,
                           checksum_of(fingerprint_, part_, blocks_++, block_records_, buffer_)};
  file_.add(as_text(std::as_bytes(std::span{&header, 1})));
  file_.add(as_text(buffer_));
  records_ += std::exchange(block_records_, 0);
  bytes_ += sizeof header + buffer_.size();
  buffer_.clear();
}

void CheckpointWriter::finish() {
  if (block_records_ > 0) write_block();
  write_block();
  file_.finish();
}

CheckpointReader::CheckpointReader(std::string path, std::uint64_t fingerprint, Part part)
    : path_(std::move(path)),
      fingerprint_(fingerprint),
      part_(part),
      file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct ::stat status {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0)
    throw TaskFailure{Error{path_ + ": cannot be opened: " + std::strerror(errno)}};
  file_left_ = static_cast<std::uint64_t>(status.st_size);
}

bool CheckpointReader::read_block() {
  BlockHeader header;
  block_ = next_block_++;
  read(std::as_writable_bytes(std::span{&header, 1}));
  if (header.bytes > file_left_) fail("the file ends too early");
  buffer_.resize(header.bytes);
  read(buffer_);
  if (checksum_of(fingerprint_, part_, block_, header.records, buffer_) != header.checksum)
    fail("its checksum is not that of its bytes");
  records_left_ = header.records;
  bytes_left_ = buffer_;
  if (records_left_ == 0 && file_left_ > 0) fail("bytes follow after the last block");
  return records_left_ > 0;
}

void CheckpointReader::read(std::span<std::byte> out) {
  if (out.size() > file_left_) fail("the file ends too early");
  file_left_ -= out.size();
  while (!out.empty()) {
    const ssize_t n = ::read(file_.get(), out.data(), std::min(out.size(), read_bytes_max));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(std::string{"cannot be read: "} + std::strerror(errno));
    if (n == 0) fail("the file ends too early");
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

void CheckpointReader::fail(const std::string& why) const {
  throw TaskFailure{Error{path_ + ": block " + std::to_string(block_) + ": " + why +
                          "; valid: what checkpoint() has written; try: remove the folder, and "
                          "compute the records again"}};
}

std::string CheckpointReader::location() const {
  return path_ + ": record " + std::to_string(records_read_ > 0 ? records_read_ - 1 : 0);
}

}  // namespace starling::flow
