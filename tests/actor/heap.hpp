/// How much memory operator new and aligned_alloc have given out: this program's own count it. What
/// aligned_alloc gave counts for good, whoever frees it. One thread.
#pragma once

#include <cstddef>

namespace starling::wire {

/// Bytes taken now, and the most there were since reset.
std::size_t heap_taken();
std::size_t heap_taken_most();
void heap_reset_most();

}  // namespace starling::wire
