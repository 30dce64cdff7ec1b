/// The outputs of a stage that outlive the job that made them, because its data set is cached.
/// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

class KeptOutputs {
 public:
  using Parts = std::vector<Output>;

  /// Returns the outputs of all parts; null before the first job with this stage has ended.
  [[nodiscard]] std::shared_ptr<const Parts> get() const {
    return is_set_.load(std::memory_order_acquire) ? parts_ : nullptr;
  }
  /// Keeps the outputs, unless those of another job are kept already.
  void set(std::shared_ptr<const Parts> parts) {
    if (is_claimed_.exchange(true)) return;
    parts_ = std::move(parts);
    is_set_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> is_claimed_ = false;
  std::atomic<bool> is_set_ = false;
  /// Written once, before `is_set_`.
  std::shared_ptr<const Parts> parts_;
};

}  // namespace starling::flow
