/// Where gradients are computed: a few threads of lower priority, so that the actors, which answer
/// everyone's questions, are never kept waiting by a computation.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "starling/engine/work/gradients.hpp"

namespace starling::actor {

/// Memory of one compute thread, reused from task to task.
using core::Scratch;

/// Keeps the process from handing freed memory back to the system between steps: a fresh page costs
/// more than the copy into it (measured: 228 us of processor time a step without, 105 us with, for
/// 100,000 idle parameters and 4 peers). Tensors have blocks of their own (base/tensor_pool.hpp);
/// of all else some 8 MiB an arena stay. Idempotent; called by every job; a no-op without glibc.
void keep_freed_memory();

/// First come, first served, by the thread that fell asleep last: its caches are warm. Submitting
/// never blocks: each worker has at most one task here, so the queue is bounded by the number of
/// workers. Thread-safe.
class ComputePool {
 public:
  using Work = std::function<void(Scratch&)>;

  /// Starts `threads` threads at nice 10; with 0 threads, tasks run only by run().
  explicit ComputePool(std::size_t threads);
  ~ComputePool() { close(); }

  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  [[nodiscard]] bool has_threads() const noexcept { return has_threads_; }

  /// Runs `work` later on some thread. It must not throw. Dropped once the pool is closed.
  void submit(Work work);

  /// waiting() counts the tasks that wait for a thread; run() runs the one at `position` of them, 0
  /// being the one that came first. run() requires a pool without threads and position < waiting().
  [[nodiscard]] std::size_t waiting();
  void run(std::size_t position, Scratch& scratch);

  /// Finishes the tasks that have begun and drops the rest. Call from one thread, no task's.
  void close();

 private:
  struct Thread {
    std::condition_variable woken;
    std::thread thread;
  };

  void work(Thread& self);

  const bool has_threads_;
  std::mutex mutex_;
  std::deque<Work> queue_;
  bool closed_ = false;
  /// The threads that sleep.
  std::vector<Thread*> idle_;
  std::deque<Thread> threads_;
};

}  // namespace starling::actor
