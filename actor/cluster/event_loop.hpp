/// One thread that runs work that other threads hand it, in order, at once or after a delay.
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

namespace starling::actor {

/// Thread-safe. Work that is handed in must not throw.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Work = std::function<void()>;

  EventLoop() : thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~EventLoop() { close(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void post(Work work) { post_at(Clock::now(), std::move(work)); }
  void post_after(Clock::duration delay, Work work) {
    post_at(Clock::now() + delay, std::move(work));
  }

  /// Runs `f` on the loop's thread and returns its result. Call from another thread, while the loop
  /// runs.
  template <class F>
  std::invoke_result_t<F> call(F f) {
    std::promise<std::invoke_result_t<F>> promise;
    auto future = promise.get_future();
    post([&] { promise.set_value(f()); });
    return future.get();
  }
  /// The same, or nothing where the loop is busy for so long; `f` may run later.
  template <class F>
  std::optional<std::invoke_result_t<F>> call_within(Clock::duration time, F f) {
    const auto promise = std::make_shared<std::promise<std::invoke_result_t<F>>>();
    auto future = promise->get_future();
    post([promise, f] { promise->set_value(f()); });
    if (future.wait_for(time) != std::future_status::ready) return std::nullopt;
    return future.get();
  }

  /// Drops work that has not begun, and waits for work that has. Call from another thread;
  /// idempotent.
  void close() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void post_at(Clock::time_point at, Work work) {
    {
      const std::lock_guard lock{mutex_};
      queue_.emplace(at, std::move(work));
    }
    filled_.notify_one();
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      if (queue_.empty()) {
        filled_.wait(lock, stop, [this] { return !queue_.empty(); });
      } else if (const auto at = queue_.begin()->first; at > Clock::now()) {
        filled_.wait_until(lock, stop, at, [&] { return queue_.begin()->first < at; });
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
  std::condition_variable_any filled_;
  /// Equal times in the order in which they were handed in.
  std::multimap<Clock::time_point, Work> queue_;
  std::jthread thread_;
};

}  // namespace starling::actor
