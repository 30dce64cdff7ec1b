#include "starling/engine/flow/shuffle/block.hpp"

#include <utility>

#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

std::size_t size_of(std::span<const Bytes> blocks) {
  std::size_t size = 0;
  for (const Bytes& block : blocks) size += block.size();
  return size;
}

SpilledBlocks& SpilledBlocks::operator=(SpilledBlocks&& other) noexcept {
  release();
  file_ = std::move(other.file_);
  blocks_ = std::exchange(other.blocks_, {});
  return *this;
}

void SpilledBlocks::append(const Bytes& block) {
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back({file_->append(block), block.size(), checksum_of(block)});
}

std::uint64_t SpilledBlocks::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const BlockLocation& block : blocks_) bytes += block.size;
  return bytes;
}

void SpilledBlocks::read(std::size_t i, Bytes& block) const {
  const BlockLocation& location = blocks_.at(i);
  block.resize(location.size);
  file_->read(location.offset, block);
  if (checksum_of(block) != location.checksum)
    throw TaskFailure{
        Error{"spilled data is damaged: its checksum has changed since it was "
              "written; try: a spill folder on another disk"}};
}

void SpilledBlocks::release() noexcept {
  // The last owner of a file removes it as a whole.
  if (file_.use_count() <= 1) return;
  for (std::size_t i = 0; i < blocks_.size();) {
    const std::uint64_t begin = blocks_[i].offset;
    std::uint64_t end = begin;
    for (; i < blocks_.size() && blocks_[i].offset == end; ++i) end += blocks_[i].size;
    file_->release(begin, end - begin);
  }
}

void BlockWriter::end_block() {
  if (is_spilling_) {
    written_.spilled.append(buffer_);
    buffer_.clear();
    return;
  }
  const std::size_t size = buffer_.size();
  // The buffer of a small run may take twice the memory that it needs.
  if (buffer_.capacity() > buffer_.size() + buffer_.size() / 4) buffer_.shrink_to_fit();
  written_.in_memory.push_back(std::exchange(buffer_, {}));
  // Records are mostly much smaller than a block, so that a full block fits in this memory.
  if (size >= block_bytes_min) buffer_.reserve(block_bytes_min + block_bytes_min / 8);
}

Blocks BlockWriter::finish() {
  if (!buffer_.empty()) end_block();
  return std::exchange(written_, {});
}

std::span<const std::byte> BlockReader::next() {
  if (next_ < blocks_.in_memory.size()) return blocks_.in_memory[next_++];
  if (next_ >= blocks_.spilled.size()) return {};
  blocks_.spilled.read(next_++, buffer_);
  return buffer_;
}

}  // namespace starling::flow
