#include "starling/actor/compute/compute_pool.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "starling/base/check.hpp"

namespace starling::actor {
namespace {

/// Linux keeps nice values by thread. Being refused costs speed of control, not correctness.
void lower_priority() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, 10);
}

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  (void)::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  (void)::mallopt(M_TRIM_THRESHOLD, 8 << 20);
  (void)::mallopt(M_TOP_PAD, 1 << 20);
#endif
}

ComputePool::ComputePool(std::size_t threads) : has_threads_(threads > 0) {
  try {
    for (std::size_t i = 0; i < threads; ++i) {
      Thread& one = threads_.emplace_back();
      one.thread = std::thread{[this, &one] { work(one); }};
    }
  } catch (...) {
    close();  // ends the threads that run already
    throw;
  }
}

void ComputePool::close() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    queue_.clear();
  }
  // A concurrent submit() may still wake a thread: the Thread objects live as long as the pool.
  for (Thread& one : threads_) one.woken.notify_one();
  for (Thread& one : threads_)
    if (one.thread.joinable()) one.thread.join();
}

void ComputePool::submit(Work work) {
  Thread* woken = nullptr;
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    queue_.push_back(std::move(work));
    if (!idle_.empty()) {
      woken = idle_.back();
      idle_.pop_back();
    }
  }
  if (woken != nullptr) woken->woken.notify_one();
}

std::size_t ComputePool::waiting() {
  const std::lock_guard lock{mutex_};
  return queue_.size();
}

void ComputePool::run(std::size_t position, Scratch& scratch) {
  STARLING_CHECK(!has_threads_ && position < queue_.size());
  const auto at = queue_.begin() + static_cast<std::ptrdiff_t>(position);
  const Work task = std::move(*at);
  queue_.erase(at);
  task(scratch);
}

void ComputePool::work(Thread& self) {
  lower_priority();
  Scratch scratch;
  for (;;) {
    Work task;
    {
      std::unique_lock lock{mutex_};
      while (!closed_ && queue_.empty()) {
        idle_.push_back(&self);
        self.woken.wait(lock);
        std::erase(idle_, &self);  // after a spurious wake-up
      }
      if (closed_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task(scratch);
  }
}

}  // namespace starling::actor
