/// Runs plans on threads of this process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "starling/actor/flow/task_span.hpp"
#include "starling/engine/flow/plan/progress.hpp"
#include "starling/engine/flow/plan/runner.hpp"
#include "starling/engine/flow/plan/task_memory.hpp"

namespace starling::flow {

struct ThreadRunnerOptions {
  /// The threads that run the tasks of one job, the caller's among them; above 0.
  std::size_t threads = 1;
  /// See Runner::default_parts().
  Part default_parts = 16;
  /// A job ends if a part has failed this many times; above 0.
  std::uint32_t attempts_max = 2;
  /// As in MapReduceOptions.
  std::function<void(const StageProgress&)> on_progress = {};
  std::function<void(const TaskSpan&)> on_task = {};
  std::function<bool()> is_stopped = {};
};

/// Runs each job on threads that it starts for this job. Thread-safe.
class ThreadRunner : public Runner {
 public:
  ThreadRunner(ThreadRunnerOptions options, std::shared_ptr<TaskMemory> memory)
      : options_(std::move(options)), memory_(std::move(memory)) {}

  Result<std::vector<Output>> run(const StagePtr& last) override;
  Result<StagePtr> keep(const StagePtr& stage, const StagePtr& former) override;
  [[nodiscard]] Part default_parts() const override { return options_.default_parts; }

 private:
  ThreadRunnerOptions options_;
  std::shared_ptr<TaskMemory> memory_;
  std::atomic<std::uint64_t> jobs_ = 0;
};

}  // namespace starling::flow
