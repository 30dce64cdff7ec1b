/// The threads that compute gradients. They have a lower priority than the actors' threads, so that
/// no actor waits for a computation before it answers a message.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "starling/engine/work/gradients.hpp"

namespace starling::actor {

/// The working memory of one compute thread, reused by all computations on it.
using core::Scratch;

/// Keeps the process from returning freed memory to the system between steps, because a fresh page
/// costs more than the copy into it (measured: 228 us of processor time per step without this, 105
/// us with it, for 100,000 idle parameters and 4 peers). Tensors have their own pool
/// (base/tensor_pool.hpp); of other memory the process keeps about 8 MiB per arena. Idempotent;
/// called by every job; does nothing without glibc.
void keep_freed_memory();

/// Runs work in the order in which it was submitted, each time on the thread that fell asleep last,
/// whose caches are warm. submit() never blocks. The number of workers bounds the queue, because
/// each worker, and the observer, submits its next work only after its last has run. Thread-safe.
class ComputePool {
 public:
  using Work = std::function<void(Scratch&)>;

  /// Starts `threads` threads, with a nice value of 10. With 0 threads, only run() runs work.
  explicit ComputePool(std::size_t threads);
  ~ComputePool() { close(); }

  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  [[nodiscard]] bool has_threads() const noexcept { return has_threads_; }

  /// Runs `work`, which must not throw, later on one of the threads. Drops it if the pool is
  /// closed.
  void submit(Work work);

  /// Returns the number of work items that wait for a thread.
  [[nodiscard]] std::size_t queue_size();
  /// Runs the waiting item at `position`; 0 is the item that was submitted first. Requires: the
  /// pool has no threads, and position < queue_size().
  void run(std::size_t position, Scratch& scratch);

  /// Finishes the work that has begun and drops the rest. May be called by one thread only, and not
  /// by work of this pool.
  void close();

 private:
  struct Thread {
    std::condition_variable wake_up;
    std::thread thread;
  };

  void run_thread(Thread& self);

  const bool has_threads_;
  std::mutex mutex_;
  std::deque<Work> queue_;
  bool closed_ = false;
  /// The threads that sleep; the last one fell asleep last.
  std::vector<Thread*> idle_;
  std::deque<Thread> threads_;
};

}  // namespace starling::actor
