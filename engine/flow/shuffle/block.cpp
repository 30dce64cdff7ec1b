#include "starling/engine/flow/shuffle/block.hpp"

#include <utility>

#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void append(Blocks& blocks, const Bytes& bytes) {
  blocks.spilled.push_back({blocks.file->append(bytes), bytes.size(), checksum_of(bytes)});
}

}  // namespace

std::size_t size_of(std::span<const Bytes> blocks) {
  std::size_t size = 0;
  for (const Bytes& block : blocks) size += block.size();
  return size;
}

Blocks spill(std::span<const Bytes> blocks, std::shared_ptr<SpillFile> file) {
  Blocks written;
  written.file = std::move(file);
  for (const Bytes& block : blocks) append(written, block);
  return written;
}

void BlockWriter::end_block() {
  if (written_.file) {
    append(written_, buffer_);
    buffer_.clear();
    return;
  }
  const std::size_t size = buffer_.size();
  // The buffer of a small run may take twice the memory that it needs.
  if (buffer_.capacity() > buffer_.size() + buffer_.size() / 4) buffer_.shrink_to_fit();
  written_.in_memory.push_back(std::exchange(buffer_, {}));
  // Records are mostly much smaller than a block.
  if (size >= block_bytes_min) buffer_.reserve(block_bytes_min + block_bytes_min / 8);
}

Blocks BlockWriter::finish() {
  if (!buffer_.empty()) end_block();
  return std::move(written_);
}

std::span<const std::byte> BlockReader::next() {
  if (!blocks_.is_spilled())
    return next_ == blocks_.in_memory.size() ? std::span<const std::byte>{}
                                             : blocks_.in_memory[next_++];
  if (next_ == blocks_.spilled.size()) return {};
  const SpilledBlock& block = blocks_.spilled[next_++];
  buffer_.resize(block.size);
  blocks_.file->read(block.offset, buffer_);
  if (checksum_of(buffer_) != block.checksum)
    throw TaskFailure{
        Error{"spilled data is damaged: its checksum has changed since it was "
              "written; try: a spill folder on another disk"}};
  return buffer_;
}

}  // namespace starling::flow
