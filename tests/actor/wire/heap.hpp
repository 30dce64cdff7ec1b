/// Counts the memory that operator new and aligned_alloc allocate. heap.cpp replaces both in the
/// program. Memory from aligned_alloc stays counted after it is freed. Not thread-safe.
#pragma once

#include <cstddef>

namespace starling::wire {

/// Returns the number of bytes that are allocated now.
std::size_t heap_bytes();
/// Returns the largest number of bytes that were allocated at a time since heap_reset_peak().
std::size_t heap_peak_bytes();
void heap_reset_peak();

}  // namespace starling::wire
