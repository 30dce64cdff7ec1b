#include "tests/actor/heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t taken = 0;
std::size_t most = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc{};
  taken += malloc_usable_size(block);
  most = std::max(most, taken);
  return block;
}
void operator delete(void* block) noexcept {
  taken -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace starling::wire {

std::size_t heap_taken() { return taken; }
std::size_t heap_taken_most() { return most; }
void heap_reset_most() { most = taken; }

}  // namespace starling::wire
