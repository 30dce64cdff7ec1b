#include "tests/actor/wire/heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t allocated_bytes = 0;
std::size_t peak_bytes = 0;

void* count(void* block) noexcept {
  if (block != nullptr) allocated_bytes += malloc_usable_size(block);
  peak_bytes = std::max(peak_bytes, allocated_bytes);
  return block;
}

void* allocate(std::size_t size) {
  void* block = count(std::malloc(size));
  if (block == nullptr) throw std::bad_alloc{};
  return block;
}

void release(void* block) noexcept {
  allocated_bytes -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

// All forms of the operators are defined, because a sanitizer would provide the missing ones.
void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return count(std::malloc(size));
}
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }

/// Counts the memory that core::Buffer allocates. That it is freed is not counted.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return count(memalign(alignment, size));
}

namespace starling::wire {

std::size_t heap_bytes() { return allocated_bytes; }
std::size_t heap_peak_bytes() { return peak_bytes; }
void heap_reset_peak() { peak_bytes = allocated_bytes; }

}  // namespace starling::wire
