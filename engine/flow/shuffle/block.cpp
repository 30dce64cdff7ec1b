#include "starling/engine/flow/shuffle/block.hpp"

#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

constexpr std::size_t block_bytes_min = std::size_t{64} << 10U;

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

void BlockWriter::end_record() {
  if (buffer_.size() >= block_bytes_min) write_block();
}

void BlockWriter::write_block() {
  const std::uint64_t offset = written_.file->append(buffer_);
  written_.blocks.push_back({offset, buffer_.size(), checksum_of(buffer_)});
  buffer_.clear();
}

SpilledBlocks BlockWriter::finish() {
  if (!buffer_.empty()) write_block();
  return std::move(written_);
}

std::span<const std::byte> BlockReader::next() {
  if (next_ == spilled_.blocks.size()) return {};
  const Block& block = spilled_.blocks[next_++];
  buffer_.resize(block.size);
  spilled_.file->read(block.offset, buffer_);
  if (checksum_of(buffer_) != block.checksum)
    throw TaskFailure{
        Error{"spilled data is damaged: its checksum has changed since it was "
              "written; try: a spill folder on another disk"}};
  return buffer_;
}

}  // namespace starling::flow
