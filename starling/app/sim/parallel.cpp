#include "starling/app/sim/parallel.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "starling/base/check.hpp"

namespace starling::app {
namespace {

/// Hands out the pieces and knows when all threads are through.
class Crew {
 public:
  Crew(std::size_t count, std::size_t threads) : count_(count), running_(threads) {}

  void run(const std::function<void(std::size_t)>& work) noexcept {
    try {
      for (std::size_t i = 0; (i = next_++) < count_;) work(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock{mutex_};
      if (!fault_) fault_ = std::current_exception();
    }
    const std::lock_guard lock{mutex_};
    if (--running_ == 0) ended_.notify_all();
  }

  /// True once all are through; waits a little for it.
  bool wait() {
    std::unique_lock lock{mutex_};
    return ended_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return running_ == 0; });
  }

  void rethrow() const {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  const std::size_t count_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_;
  std::exception_ptr fault_;
};

}  // namespace

double Shares::mean() const noexcept {
  double sum = 0;
  for (const auto& part : parts_) sum += part;
  return parts_.empty() ? 1 : sum / static_cast<double>(parts_.size());
}

void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& watch) {
  STARLING_CHECK(threads > 0);
  const std::size_t hands = std::min(threads, count);
  if (hands == 0) return;
  Crew crew{count, hands};
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < hands; ++i) workers.emplace_back([&] { crew.run(work); });
    while (!crew.wait()) watch();
  }
  crew.rethrow();
}

}  // namespace starling::app
