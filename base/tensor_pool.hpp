/// Memory for tensors. New blocks of one size lie one behind the other, like ranges that are sent
/// together. The pool reuses returned blocks, because a fresh page costs more than the copy into
/// it. It keeps at most `idle_bytes_max` bytes of them and returns the rest to the system at once,
/// so that a burst does not hold memory for ever. Any thread.
#pragma once

#include <cstddef>

namespace starling::blocks {

/// Bytes of the smallest block that the pool keeps; malloc serves smaller blocks well.
inline constexpr std::size_t least = std::size_t{64} << 10U;
inline constexpr std::size_t idle_bytes_max = std::size_t{64} << 20U;

/// Returns at least `bytes` bytes, uninitialised, at a multiple of 64. Throws std::bad_alloc.
[[nodiscard]] void* take(std::size_t bytes);
/// Requires: take(bytes) returned `block`.
void give(void* block, std::size_t bytes) noexcept;

/// Bytes in blocks of at least `least` bytes, in use and idle.
struct Counts {
  std::size_t used_bytes = 0;
  std::size_t idle_bytes = 0;
};
[[nodiscard]] Counts counts();

}  // namespace starling::blocks
