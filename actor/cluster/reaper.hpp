/// Destroys objects whose destructors take long, on threads of its own: closed jobs, whose
/// destructors wait for their actors to end and for the steps that are being computed. Internal to
/// ClusterNode.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace starling::actor {

/// Thread-safe. Its destructor waits until all objects are destroyed.
class Reaper {
 public:
  /// Destroys up to `threads` objects at once, so that fewer objects whose destructors never return
  /// do not keep others. The threads are started here and not by destroy(), which therefore cannot
  /// fail to start one. Requires: threads > 0.
  explicit Reaper(std::size_t threads) {
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

  /// Destroys the object on a thread of the reaper's, once no other shared pointer to it exists.
  /// Requires: nobody can get a new one.
  void destroy(std::shared_ptr<void> object) {
    const std::lock_guard lock{mutex_};
    queue_.push_back(std::move(object));
    wake_.notify_one();
  }
  /// The number of objects that are not destroyed yet.
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return queue_.size() + destroying_;
  }

 private:
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
      ++destroying_;
      lock.unlock();
      while (object.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      object.reset();
      lock.lock();
      --destroying_;
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_closing_ = false;
  std::size_t destroying_ = 0;
  std::deque<std::shared_ptr<void>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace starling::actor
