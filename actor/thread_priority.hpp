/// The priorities of threads. Linux keeps a nice value for each thread, and divides the time of a
/// processor by these values: a thread whose nice value is 5 higher than that of another thread
/// gets about a third of the other's time; if its value is 10 higher, about a tenth.
#pragma once

namespace starling {

/// The values are nice values relative to that of the process.
enum class ThreadPriority : int {
  /// Receives and sends messages, and detects failures.
  network = -5,
  /// Runs the members of a job on a node.
  members = 5,
  /// Computes gradients, or reads data.
  computing = 10,
};

/// Sets the priority of the calling thread. If the system refuses, as it refuses `network` to a
/// process without CAP_SYS_NICE or RLIMIT_NICE, the thread keeps its priority, and nothing else
/// changes.
void set_priority(ThreadPriority priority);

/// True if the calling thread has set its priority to `network`, even if the system refused. Such a
/// thread must not run code of a job. This code may never return; then other nodes receive nothing
/// from this process, and take it for dead.
[[nodiscard]] bool is_network_thread();

/// Threads that the calling thread starts from now on do not inherit a negative nice value.
void keep_priority_from_children();

}  // namespace starling
