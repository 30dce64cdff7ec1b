#include "starling/base/tensor_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace starling::tensor_pool {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool is_pooled = false;  // AddressSanitizer must see uses after release()
#else
constexpr bool is_pooled = true;
#endif

/// Bytes of an area: an interval of addresses that is mapped at once and split into new blocks. Its
/// pages take no memory before their first access.
constexpr std::size_t area_bytes = std::size_t{16} << 20U;

/// Returns the size of the block for `bytes`: rounds up to a multiple of a quarter of the largest
/// power of two that is at most `bytes`, and at least to whole pages, so that tensors of similar
/// size use the same blocks. The unused pages of a block take no memory.
std::size_t round_up(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t unit = std::max(std::bit_floor(bytes) / 4, page);
  return (bytes + unit - 1) / unit * unit;
}

class Pool {
 public:
  void* allocate(std::size_t size) {
    const std::lock_guard lock{mutex_};
    void* block = reuse_idle(size);
    if (block == nullptr) block = allocate_new(size);
    used_bytes_ += size;
    return block;
  }

  void release(void* block, std::size_t size) noexcept {
    const std::lock_guard lock{mutex_};
    used_bytes_ -= size;
    if (size > idle_bytes_max) {
      release_pages(block, size);
      return;
    }
    // Evicts the blocks that have been idle longest until the new one fits.
    auto first_kept = idle_.begin();
    for (; idle_bytes_ + size > idle_bytes_max; ++first_kept) {
      idle_bytes_ -= first_kept->size;
      release_pages(first_kept->block, first_kept->size);
    }
    idle_.erase(idle_.begin(), first_kept);
    idle_.push_back({block, size});
    idle_bytes_ += size;
  }

  Counts counts() {
    const std::lock_guard lock{mutex_};
    return {used_bytes_, idle_bytes_};
  }

 private:
  struct IdleBlock {
    void* block;
    std::size_t size;
  };
  /// The blocks of one size that take no memory: `unused_count` adjacent blocks that begin at
  /// `unused` and were never allocated, and the blocks whose pages were given back to the system.
  struct EmptyBlocks {
    std::byte* unused = nullptr;
    std::size_t unused_count = 0;
    std::vector<void*> released{};
  };

  /// Gives the block's pages back to the system. A block smaller than an area stays mapped, because
  /// Linux limits the mappings of a process: if every second block of a large model were unmapped,
  /// each of the others would be a mapping of its own.
  void release_pages(void* block, std::size_t size) noexcept {
    if (size < area_bytes && add_released(block, size))
      ::madvise(block, size, MADV_DONTNEED);
    else
      ::munmap(block, size);
  }
  /// Returns false if there is no memory to record the block.
  bool add_released(void* block, std::size_t size) noexcept {
    try {
      empty_blocks_[size].released.push_back(block);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  /// Removes an idle block of this size from the pool and returns it; null if there is none.
  void* reuse_idle(std::size_t size) {
    // Prefers the block that was released last, because it may still be in the caches.
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const IdleBlock& idle) { return idle.size == size; });
    if (found == idle_.rend()) return nullptr;
    void* block = found->block;
    idle_bytes_ -= size;
    idle_.erase(std::next(found).base());
    return block;
  }

  /// Returns a block that takes no memory yet, from a new area if there is no other.
  void* allocate_new(std::size_t size) {
    EmptyBlocks& empty = empty_blocks_[size];
    if (!empty.released.empty()) {
      void* block = empty.released.back();
      empty.released.pop_back();
      return block;
    }
    if (empty.unused_count == 0) {
      const std::size_t count = std::max<std::size_t>(1, area_bytes / size);
      void* area =
          ::mmap(nullptr, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (area == MAP_FAILED) throw std::bad_alloc{};
      empty.unused = static_cast<std::byte*>(area);
      empty.unused_count = count;
    }
    --empty.unused_count;
    return std::exchange(empty.unused, empty.unused + size);
  }

  std::mutex mutex_;
  /// Idle blocks in the order of their release; at most idle_bytes_max / block_bytes_min.
  std::vector<IdleBlock> idle_ = [] {
    std::vector<IdleBlock> idle;
    idle.reserve(idle_bytes_max / block_bytes_min + 1);
    return idle;
  }();
  std::size_t idle_bytes_ = 0;
  /// The key is the block size.
  std::map<std::size_t, EmptyBlocks> empty_blocks_;
  std::size_t used_bytes_ = 0;
};

/// The pool is never destroyed, because static objects may still release blocks when the program
/// ends.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

void* allocate(std::size_t bytes) {
  if (is_pooled && bytes >= block_bytes_min) return pool().allocate(round_up(bytes));
  void* block = std::aligned_alloc(64, (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64);
  if (block == nullptr) throw std::bad_alloc{};
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  if (is_pooled && bytes >= block_bytes_min)
    pool().release(block, round_up(bytes));
  else
    std::free(block);
}

Counts counts() { return pool().counts(); }

}  // namespace starling::tensor_pool
