/// How much memory this machine has, and how much of it is free. Any thread.
#pragma once

#include <cstddef>

namespace starling {

/// Returns the bytes of memory that this process may take: all of the machine's, or its control
/// group's limit if that is less.
[[nodiscard]] double memory_bytes();

/// Returns the bytes that this process can still take before the machine swaps or the process
/// reaches its control group's limit. Cached file pages count as free.
[[nodiscard]] double free_memory_bytes();

/// Returns the bytes of memory that this process holds now (its resident set).
[[nodiscard]] std::size_t resident_bytes();

}  // namespace starling
