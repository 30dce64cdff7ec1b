#include "tests/actor/wire/heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t taken = 0;
std::size_t most = 0;

void* counted(void* block) noexcept {
  if (block != nullptr) taken += malloc_usable_size(block);
  most = std::max(most, taken);
  return block;
}

void* take(std::size_t size) {
  void* block = counted(std::malloc(size));
  if (block == nullptr) throw std::bad_alloc{};
  return block;
}

void give_back(void* block) noexcept {
  taken -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

// Each operator is defined here: a sanitizer would provide its own for those that are missing.
void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(std::malloc(size));
}
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, std::size_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { give_back(block); }

/// Counts the memory that core::Buffer takes. Its return by free() is not counted.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return counted(memalign(alignment, size));
}

namespace starling::wire {

std::size_t heap_taken() { return taken; }
std::size_t heap_taken_most() { return most; }
void heap_reset_most() { most = taken; }

}  // namespace starling::wire
