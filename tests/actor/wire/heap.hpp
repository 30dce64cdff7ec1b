/// Counts the memory that operator new and aligned_alloc, both replaced in this program, have given
/// out. Memory of aligned_alloc stays counted after it is freed. One thread.
#pragma once

#include <cstddef>

namespace starling::wire {

/// Bytes taken now, and the most there were since reset.
std::size_t heap_taken();
std::size_t heap_taken_most();
void heap_reset_most();

}  // namespace starling::wire
