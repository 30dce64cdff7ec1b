/// Destroys objects whose destructors take long, on a thread of its own: closed jobs, which wait
/// for their actors to end. Internal to the cluster's node.
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

/// Its destructor waits until all objects are destroyed.
class Reaper {
 public:
  Reaper() = default;
  ~Reaper() {
    {
      const std::lock_guard lock{mutex_};
      closing_ = true;
    }
    came_.notify_one();
    thread_.join();
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Destroys the object on the reaper's thread, once nobody else uses it. Requires: nobody can
  /// begin to use it.
  void end(std::shared_ptr<void> last) {
    const std::lock_guard lock{mutex_};
    waiting_.push_back(std::move(last));
    came_.notify_one();
  }
  /// How many objects are not destroyed yet.
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return waiting_.size() + (ending_ ? 1 : 0);
  }

 private:
  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      came_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::shared_ptr<void> last = std::move(waiting_.front());
      waiting_.pop_front();
      ending_ = true;
      lock.unlock();
      while (last.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      last.reset();
      lock.lock();
      ending_ = false;
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable came_;
  bool closing_ = false;
  bool ending_ = false;
  std::deque<std::shared_ptr<void>> waiting_;
  /// The thread runs from the start, so that end() never fails for want of a thread.
  std::thread thread_{[this] { run(); }};
};

}  // namespace starling::actor
