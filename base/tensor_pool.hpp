/// A pool of memory blocks for tensors. New blocks of one size are adjacent in memory, so that an
/// owner can send adjacent ranges without copying them. The pool reuses released blocks, because a
/// page fault in a fresh block costs more than a copy into it. The pool keeps at most
/// `idle_bytes_max` bytes of released blocks and gives the rest back to the system at once, so that
/// a burst of allocations does not hold memory for ever. Thread-safe.
#pragma once

#include <cstddef>

namespace starling::tensor_pool {

/// Bytes of the smallest block that comes from the pool. Smaller blocks, and under AddressSanitizer
/// all blocks, come from std::aligned_alloc().
inline constexpr std::size_t block_bytes_min = std::size_t{64} << 10U;
/// The largest number of bytes of released blocks that the pool keeps.
inline constexpr std::size_t idle_bytes_max = std::size_t{64} << 20U;

/// Returns an uninitialised block of at least `bytes` bytes; its address is a multiple of 64.
/// Throws std::bad_alloc.
[[nodiscard]] void* allocate(std::size_t bytes);
/// Returns a block to the pool. Requires: allocate(bytes) returned `block`.
void release(void* block, std::size_t bytes) noexcept;

/// Bytes in the pool's blocks: in use by callers, and idle in the pool.
struct Counts {
  std::size_t used_bytes = 0;
  std::size_t idle_bytes = 0;
};
[[nodiscard]] Counts counts();

}  // namespace starling::tensor_pool
