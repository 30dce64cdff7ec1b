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

namespace starling::blocks {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool are_kept = false;  // AddressSanitizer must see uses after give()
#else
constexpr bool are_kept = true;
#endif

/// Bytes of an area from which new blocks are cut; it takes no memory before it is touched.
constexpr std::size_t area_bytes = std::size_t{16} << 20U;

/// Rounds up to quarters of powers of two, and to whole pages, so that tensors of about one size
/// use the same blocks. Pages that are not touched take no memory.
std::size_t rounded(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t unit = std::max(std::bit_floor(bytes) / 4, page);
  return (bytes + unit - 1) / unit * unit;
}

class Store {
 public:
  void* take(std::size_t size) {
    const std::lock_guard lock{mutex_};
    void* block = take_idle(size);
    if (block == nullptr) block = take_new(size);
    used_ += size;
    return block;
  }

  void give(void* block, std::size_t size) noexcept {
    const std::lock_guard lock{mutex_};
    used_ -= size;
    if (size > idle_bytes_max) {
      empty(block, size);
      return;
    }
    // Evicts the blocks that have been idle longest until the new one fits.
    auto kept = idle_.begin();
    for (; idle_bytes_ + size > idle_bytes_max; ++kept) {
      idle_bytes_ -= kept->size;
      empty(kept->block, kept->size);
    }
    idle_.erase(idle_.begin(), kept);
    idle_.push_back({block, size});
    idle_bytes_ += size;
  }

  Counts counts() {
    const std::lock_guard lock{mutex_};
    return {used_, idle_bytes_};
  }

 private:
  struct Idle {
    void* block;
    std::size_t size;
  };
  /// Blocks of one size that take no memory: `blocks` of them from `at` on, never handed out yet,
  /// and the emptied ones.
  struct Area {
    std::byte* at = nullptr;
    std::size_t blocks = 0;
    std::vector<void*> emptied{};
  };

  /// Returns the block's pages to the system and keeps its addresses: if every other block of a
  /// large model were unmapped, each remaining block would be a mapping of its own, and a process
  /// may have only so many.
  void empty(void* block, std::size_t size) noexcept {
    if (size < area_bytes && note(block, size))
      ::madvise(block, size, MADV_DONTNEED);
    else
      ::munmap(block, size);
  }
  bool note(void* emptied, std::size_t size) noexcept {
    try {
      areas_[size].emptied.push_back(emptied);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void* take_idle(std::size_t size) {
    // The block that was given back last is still in the caches.
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const Idle& idle) { return idle.size == size; });
    if (found == idle_.rend()) return nullptr;
    void* block = found->block;
    idle_bytes_ -= size;
    idle_.erase(std::next(found).base());
    return block;
  }

  void* take_new(std::size_t size) {
    Area& area = areas_[size];
    if (!area.emptied.empty()) {
      void* block = area.emptied.back();
      area.emptied.pop_back();
      return block;
    }
    if (area.blocks == 0) {
      const std::size_t blocks = std::max<std::size_t>(1, area_bytes / size);
      void* at = ::mmap(nullptr, blocks * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
      if (at == MAP_FAILED) throw std::bad_alloc{};
      area.at = static_cast<std::byte*>(at);
      area.blocks = blocks;
    }
    --area.blocks;
    return std::exchange(area.at, area.at + size);
  }

  std::mutex mutex_;
  /// Idle blocks in the order in which they were given back; at most idle_bytes_max / least.
  std::vector<Idle> idle_ = [] {
    std::vector<Idle> idle;
    idle.reserve(idle_bytes_max / least + 1);
    return idle;
  }();
  std::size_t idle_bytes_ = 0;
  /// The area of each block size that was asked for.
  std::map<std::size_t, Area> areas_;
  std::size_t used_ = 0;
};

/// The store outlives every object that gives blocks back when the program ends.
Store& store() {
  static Store& store = *new Store;
  return store;
}

}  // namespace

void* take(std::size_t bytes) {
  if (are_kept && bytes >= least) return store().take(rounded(bytes));
  void* block = std::aligned_alloc(64, (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64);
  if (block == nullptr) throw std::bad_alloc{};
  return block;
}

void give(void* block, std::size_t bytes) noexcept {
  if (are_kept && bytes >= least)
    store().give(block, rounded(bytes));
  else
    std::free(block);
}

Counts counts() { return store().counts(); }

}  // namespace starling::blocks
