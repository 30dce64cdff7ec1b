/// Destroys objects whose destructors take long, on a thread of its own: closed jobs, whose
/// destructors wait for their actors to end. Internal to ClusterNode.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace starling::actor {

/// Thread-safe. Its destructor waits until all objects are destroyed.
class Reaper {
 public:
  Reaper() = default;
  ~Reaper() {
    {
      const std::lock_guard lock{mutex_};
      is_closing_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Destroys the object on the reaper's thread, once no other shared pointer to it exists.
  /// Requires: nobody can get a new one.
  void destroy(std::shared_ptr<void> object) {
    const std::lock_guard lock{mutex_};
    queue_.push_back(std::move(object));
    wake_.notify_one();
  }
  /// The number of objects that are not destroyed yet.
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return queue_.size() + (is_destroying_ ? 1 : 0);
  }

 private:
  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      wake_.wait(lock, [&] { return is_closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::shared_ptr<void> object = std::move(queue_.front());
      queue_.pop_front();
      is_destroying_ = true;
      lock.unlock();
      while (object.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      object.reset();
      lock.lock();
      is_destroying_ = false;
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_closing_ = false;
  bool is_destroying_ = false;
  std::deque<std::shared_ptr<void>> queue_;
  /// The thread is started here and not by destroy(), which therefore cannot fail to start one.
  std::thread thread_{[this] { run(); }};
};

}  // namespace starling::actor
