/// Scratch memory for one gradient or evaluation, reused by the next. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace starling::models {

/// Allocates uninitialised spans, aligned to 64 bytes, that are valid until reset(), or rewind() to
/// an earlier mark. Both keep the memory, so that a loop of equal steps calls the system's
/// allocator only in its first iteration.
class Arena {
 public:
  /// Returns a span of `count` elements. Throws std::bad_alloc.
  template <class T>
  [[nodiscard]] std::span<T> allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignment);
    if (count > bytes_max / sizeof(T)) throw std::bad_alloc{};
    return {static_cast<T*>(allocate_bytes(count * sizeof(T))), count};
  }

  /// A point in the sequence of allocations.
  struct Mark {
    std::size_t block;
    std::size_t used_bytes;
  };
  [[nodiscard]] Mark mark() const noexcept { return {current_block_, used_bytes_}; }
  /// Invalidates the spans that allocate() has returned since `mark`.
  void rewind(const Mark& mark) noexcept {
    current_block_ = mark.block;
    used_bytes_ = mark.used_bytes;
  }

  /// Invalidates all spans that allocate() has returned.
  void reset() noexcept {
    current_block_ = 0;
    used_bytes_ = 0;
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20U;
  /// More bytes than any memory has, and so few that sums of them do not overflow.
  static constexpr std::size_t bytes_max = std::size_t{1} << 60U;

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    std::size_t size;
  };

  void* allocate_bytes(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    const std::size_t first_empty = current_block_ + (used_bytes_ > 0 ? 1 : 0);
    while (current_block_ < blocks_.size() && used_bytes_ + bytes > blocks_[current_block_].size) {
      ++current_block_;
      used_bytes_ = 0;
    }
    if (current_block_ == blocks_.size()) {
      // Frees the empty blocks, all of which are too small. If they stayed, a loop whose steps
      // become larger would keep the memory of all earlier steps.
      if (first_empty < current_block_) blocks_.resize(current_block_ = first_empty);
      const std::size_t size = bytes > block_bytes ? bytes : block_bytes;
      void* memory = std::aligned_alloc(alignment, size);
      if (memory == nullptr) throw std::bad_alloc{};
      blocks_.push_back({std::unique_ptr<void, Free>{memory}, size});
      used_bytes_ = 0;
    }
    auto* start = static_cast<std::byte*>(blocks_[current_block_].memory.get()) + used_bytes_;
    used_bytes_ += bytes;
    return start;
  }

  std::vector<Block> blocks_;
  /// The index of the block from which allocate() takes memory now, and its bytes that are in use.
  std::size_t current_block_ = 0;
  std::size_t used_bytes_ = 0;
};

}  // namespace starling::models
