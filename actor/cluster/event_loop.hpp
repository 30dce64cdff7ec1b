/// A thread that runs work which any thread posts to it, at once or after a delay: one piece at a
/// time, in the order of the times at which they are due.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/actor/thread_priority.hpp"

namespace starling::actor {

/// Thread-safe. Work must not throw.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Work = std::function<void()>;

  explicit EventLoop(ThreadPriority priority = ThreadPriority::network)
      : thread_([this, priority](const std::stop_token& stop) { run(stop, priority); }) {}
  ~EventLoop() { close(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void post(Work work) { post_at(Clock::now(), std::move(work)); }
  void post_after(Clock::duration delay, Work work) {
    post_at(Clock::now() + delay, std::move(work));
  }

  /// Runs `f` on the loop's thread and returns its result. Call it from another thread, before
  /// close().
  template <class F>
  std::invoke_result_t<F> call(F f) {
    std::promise<std::invoke_result_t<F>> promise;
    auto future = promise.get_future();
    post([&] { promise.set_value(f()); });
    return future.get();
  }
  /// As call(), but returns nullopt after `timeout` if `f` has not ended by then; `f` may still run
  /// later.
  template <class F>
  std::optional<std::invoke_result_t<F>> call_within(Clock::duration timeout, F f) {
    const auto promise = std::make_shared<std::promise<std::invoke_result_t<F>>>();
    auto future = promise->get_future();
    post([promise, f] { promise->set_value(f()); });
    if (future.wait_for(timeout) != std::future_status::ready) return std::nullopt;
    return future.get();
  }

  /// Discards work that has not begun, and waits for work that has. Call it from another thread. A
  /// second call has no effect.
  void close() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void post_at(Clock::time_point time, Work work) {
    {
      const std::lock_guard lock{mutex_};
      queue_.emplace(time, std::move(work));
    }
    work_added_.notify_one();
  }

  void run(const std::stop_token& stop, ThreadPriority priority) {
    set_priority(priority);
    keep_priority_from_children();
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      if (queue_.empty()) {
        work_added_.wait(lock, stop, [this] { return !queue_.empty(); });
      } else if (const auto due_at = queue_.begin()->first; due_at > Clock::now()) {
        work_added_.wait_until(lock, stop, due_at, [&] { return queue_.begin()->first < due_at; });
      } else {
        const Work work = std::move(queue_.begin()->second);
        queue_.erase(queue_.begin());
        lock.unlock();
        work();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable_any work_added_;
  /// The work, by the time at which it is due. Work that is due at the same time keeps the order in
  /// which it was posted.
  std::multimap<Clock::time_point, Work> queue_;
  std::jthread thread_;
};

}  // namespace starling::actor
