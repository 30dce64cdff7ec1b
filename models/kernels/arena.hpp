/// Scratch memory for one gradient or evaluation, reused for the next. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace starling::models {

/// Hands out 64-byte aligned, uninitialised spans that are valid until reset(). reset() keeps the
/// memory, so that a loop of equal steps allocates only in its first iteration.
class Arena {
 public:
  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignment);
    return {static_cast<T*>(take_bytes(count * sizeof(T))), count};
  }

  /// Invalidates all spans that were handed out.
  void reset() noexcept {
    block_ = 0;
    used_ = 0;
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20U;

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    std::size_t size;
  };

  void* take_bytes(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) {
      const std::size_t size = bytes > block_bytes ? bytes : block_bytes;
      void* memory = std::aligned_alloc(alignment, size);
      if (memory == nullptr) throw std::bad_alloc{};
      blocks_.push_back({std::unique_ptr<void, Free>{memory}, size});
      used_ = 0;
    }
    auto* start = static_cast<std::byte*>(blocks_[block_].memory.get()) + used_;
    used_ += bytes;
    return start;
  }

  std::vector<Block> blocks_;
  /// The block from which memory is taken now, and the bytes of it that are in use.
  std::size_t block_ = 0;
  std::size_t used_ = 0;
};

}  // namespace starling::models
