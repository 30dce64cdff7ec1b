/// How much memory this machine has, and how much of it is free. Any thread.
#pragma once

#include <cstddef>

namespace starling {

/// Bytes of memory that this process may take: the machine's, or its control group's where that is
/// less.
[[nodiscard]] double memory_bytes();

/// Bytes that this process can still take without evicting anything: the machine's available
/// memory, or the rest of its control group's limit where that is less.
[[nodiscard]] double free_memory_bytes();

/// Bytes of memory that this process holds now.
[[nodiscard]] std::size_t resident_bytes();

}  // namespace starling
