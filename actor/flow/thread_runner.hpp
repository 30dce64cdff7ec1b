/// Runs plans on threads of this process.
#pragma once

#include <cstddef>
#include <memory>

#include "starling/engine/flow/plan/runner.hpp"
#include "starling/engine/flow/plan/storage.hpp"

namespace starling::flow {

struct ThreadRunnerOptions {
  /// The threads that run the tasks of one job, the caller's among them; above 0.
  std::size_t threads = 1;
  Part default_parts = 16;
  /// A job ends if a part has failed this many times; above 0.
  std::uint32_t attempts_max = 2;
};

/// Thread-safe.
class ThreadRunner : public Runner {
 public:
  ThreadRunner(ThreadRunnerOptions options, std::shared_ptr<Storage> storage)
      : options_(options), storage_(std::move(storage)) {}

  Result<std::vector<Output>> run(const StagePtr& last) override;
  [[nodiscard]] Part default_parts() const override { return options_.default_parts; }

 private:
  ThreadRunnerOptions options_;
  std::shared_ptr<Storage> storage_;
};

}  // namespace starling::flow
