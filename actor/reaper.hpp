/// Destroys closed jobs on threads of its own. The destructor of a job takes long: it waits until
/// the job's actors have ended and until the steps in computation have returned. A step may never
/// return, so the reaper replaces a thread whose object hangs. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace starling::actor {

/// Thread-safe. Its destructor waits until all objects are destroyed.
class Reaper {
 public:
  using Clock = std::chrono::steady_clock;

  /// pending_count() leaves out up to this number of objects that hang.
  static constexpr std::size_t hanging_uncounted_max = 32;

  /// Destroys up to `threads` objects at once. An object hangs if its destructor takes longer than
  /// `hangs_after`. Starts the threads, so that destroy() needs no new one and cannot fail.
  /// Requires: threads > 0.
  explicit Reaper(std::size_t threads, Clock::duration hangs_after = std::chrono::seconds{10})
      : at_once_(threads), hangs_after_(hangs_after) {
    try {
      while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
    } catch (...) {
      close();
      throw;
    }
  }
  ~Reaper() { close(); }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Destroys the object on one of the reaper's threads, as soon as no other shared pointer to it
  /// exists. Requires: nobody makes further copies of the pointer.
  void destroy(std::shared_ptr<void> object) {
    const std::lock_guard lock{mutex_};
    queue_.push_back(std::move(object));
    wake_.notify_one();
  }
  /// Returns the number of objects that are not destroyed yet, without up to
  /// `hanging_uncounted_max` that hang.
  [[nodiscard]] std::size_t pending_count() const {
    const std::lock_guard lock{mutex_};
    return queue_.size() + begun_at_.size() - hanging_uncounted();
  }
  /// Starts a thread in place of each thread whose object hangs, so that other objects are
  /// destroyed meanwhile. If the system cannot start one, returns without an error; call again
  /// later.
  void replace_hanging_threads() {
    const std::lock_guard lock{mutex_};
    try {
      while (threads_.size() < at_once_ + hanging_uncounted())
        threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
    }
  }

 private:
  /// Returns the number of objects that hang, up to `hanging_uncounted_max`. Requires: mutex_ is
  /// locked.
  [[nodiscard]] std::size_t hanging_uncounted() const {
    const auto first = begun_at_.upper_bound(Clock::now() - hangs_after_);
    return std::min(hanging_uncounted_max,
                    static_cast<std::size_t>(std::distance(begun_at_.begin(), first)));
  }

  void close() {
    {
      const std::lock_guard lock{mutex_};
      is_closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      wake_.wait(lock, [&] { return is_closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::shared_ptr<void> object = std::move(queue_.front());
      queue_.pop_front();
      const auto begun_at = begun_at_.insert(Clock::now());
      lock.unlock();
      while (object.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      object.reset();
      lock.lock();
      begun_at_.erase(begun_at);
    }
  }

  const std::size_t at_once_;
  const Clock::duration hangs_after_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_closing_ = false;
  /// The time at which each destruction that has not ended yet began.
  std::multiset<Clock::time_point> begun_at_;
  std::deque<std::shared_ptr<void>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace starling::actor
