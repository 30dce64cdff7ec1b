#include "starling/actor/compute/compute_pool.hpp"

#include <malloc.h>

#include "starling/actor/thread_priority.hpp"
#include "starling/base/check.hpp"

namespace starling::actor {

void keep_freed_memory() {
#ifdef __GLIBC__
  // Blocks below 4 MiB come from the heap. The heap keeps up to 8 MiB free at its top, and grows by
  // 1 MiB more than a request needs.
  (void)::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  (void)::mallopt(M_TRIM_THRESHOLD, 8 << 20);
  (void)::mallopt(M_TOP_PAD, 1 << 20);
#endif
}

ComputePool::ComputePool(std::size_t threads) : has_threads_(threads > 0) {
  try {
    for (std::size_t i = 0; i < threads; ++i) {
      Thread& added = threads_.emplace_back();
      added.thread = std::thread{[this, &added] { run_thread(added); }};
    }
  } catch (...) {
    close();  // ends the threads that were started
    throw;
  }
}

void ComputePool::close() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    queue_.clear();
  }
  // A concurrent submit() may notify a thread even after this function has returned. This is safe,
  // because the Thread objects live as long as the pool.
  for (Thread& thread : threads_) thread.wake_up.notify_one();
  for (Thread& thread : threads_)
    if (thread.thread.joinable()) thread.thread.join();
}

void ComputePool::submit(Work work) {
  Thread* sleeping = nullptr;
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    queue_.push_back(std::move(work));
    if (!idle_.empty()) {
      sleeping = idle_.back();
      idle_.pop_back();
    }
  }
  if (sleeping != nullptr) sleeping->wake_up.notify_one();
}

std::size_t ComputePool::queue_size() {
  const std::lock_guard lock{mutex_};
  return queue_.size();
}

void ComputePool::run(std::size_t position, Scratch& scratch) {
  // Takes no lock: a job has a pool without threads only under a TestScheduler. That scheduler runs
  // the whole job on one thread.
  STARLING_CHECK(!has_threads_ && position < queue_.size());
  const auto at = queue_.begin() + static_cast<std::ptrdiff_t>(position);
  const Work work = std::move(*at);
  queue_.erase(at);
  work(scratch);
}

void ComputePool::run_thread(Thread& self) {
  set_priority(ThreadPriority::computing);
  Scratch scratch;
  for (;;) {
    Work work;
    {
      std::unique_lock lock{mutex_};
      while (!closed_ && queue_.empty()) {
        idle_.push_back(&self);
        self.wake_up.wait(lock);
        // After a spurious wake-up, `idle_` still has this thread: only submit() removes threads.
        std::erase(idle_, &self);
      }
      if (closed_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work(scratch);
  }
}

}  // namespace starling::actor
