/// Counts the memory that is allocated by operator new and aligned_alloc, which are replaced in
/// this program. Memory from aligned_alloc stays counted after it is freed. One thread.
#pragma once

#include <cstddef>

namespace starling::wire {

/// The allocated bytes now, and the most since heap_reset_peak().
std::size_t heap_bytes();
std::size_t heap_peak_bytes();
void heap_reset_peak();

}  // namespace starling::wire
