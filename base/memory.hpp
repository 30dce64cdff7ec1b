/// How much memory this machine has, and how much of it is free. Thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace starling {

/// The bytes of memory that control groups allow a process; infinity if they set no limit.
struct GroupMemory {
  double total = std::numeric_limits<double>::infinity();
  /// The part of `total` that is not used.
  double free = std::numeric_limits<double>::infinity();
};

/// Returns what the control groups of a process allow it: the lowest limits of its own group and
/// the groups above it. `groups` is the process's file /proc/PID/cgroup, and `root` the folder in
/// which the groups are mounted, in version 1 or 2.
[[nodiscard]] GroupMemory control_group_memory(const std::string& groups = "/proc/self/cgroup",
                                               const std::string& root = "/sys/fs/cgroup");

/// Returns the bytes of memory that this process may take: all of the machine's, or the limit of
/// its control groups if that is less.
[[nodiscard]] double memory_bytes();

/// Returns the bytes that this process can still take before the machine swaps or the process
/// reaches the limit of its control groups. Cached file pages count as free.
[[nodiscard]] double free_memory_bytes();

/// Returns the bytes of memory that this process holds now (its resident set).
[[nodiscard]] std::size_t resident_bytes();

}  // namespace starling
