/// The outputs of a stage that outlive the job that made them, because its data set is cached.
/// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

class KeptOutputs {
 public:
  using Parts = std::vector<Output>;

  /// Returns the outputs of all parts; null before the first job with this stage has ended.
  [[nodiscard]] std::shared_ptr<const Parts> get() const { return parts_.load(); }
  void set(std::shared_ptr<const Parts> parts) { parts_.store(std::move(parts)); }

 private:
  std::atomic<std::shared_ptr<const Parts>> parts_;
};

}  // namespace starling::flow
