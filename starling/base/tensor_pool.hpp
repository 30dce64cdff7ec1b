/// Memory for tensors. New blocks of one size lie one behind the other, as ranges do that are sent
/// together. Blocks that are given back are used again, for a fresh page costs more than
/// the copy into it; no more than `idle_bytes_max` are kept so, and the rest goes back to the
/// system at once, so that a burst is not remembered for ever. Any thread.
#pragma once

#include <cstddef>

namespace starling::blocks {

/// Smaller ones come from malloc, which serves them well.
inline constexpr std::size_t least = std::size_t{64} << 10U;
inline constexpr std::size_t idle_bytes_max = std::size_t{64} << 20U;

/// At least `bytes` bytes, uninitialised, at a multiple of 64. Throws std::bad_alloc.
[[nodiscard]] void* take(std::size_t bytes);
/// Requires: `block` is of take(bytes).
void give(void* block, std::size_t bytes) noexcept;

/// What blocks of `least` bytes and more take up.
struct Counts {
  std::size_t used_bytes = 0;
  std::size_t idle_bytes = 0;
};
[[nodiscard]] Counts counts();

}  // namespace starling::blocks
