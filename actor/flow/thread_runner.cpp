#include "starling/actor/flow/thread_runner.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "starling/base/catch_errors.hpp"
#include "starling/engine/flow/plan/plan.hpp"
#include "starling/engine/flow/plan/scheduler.hpp"
#include "starling/engine/flow/plan/task.hpp"

namespace starling::flow {
namespace {

/// One run of one plan. Several threads call work().
class JobRun {
 public:
  JobRun(std::uint64_t number, Plan plan, const ThreadRunnerOptions& options, TaskMemory& memory)
      : number_(number),
        plan_(std::move(plan)),
        options_(options),
        scheduler_(plan_, options.attempts_max),
        memory_(memory) {
    for (const PlannedStage& planned : plan_.stages) {
      const Part parts = planned.stage->description.parts;
      stages_.push_back({.made = std::make_shared<KeptOutputs::Parts>(parts),
                         .outputs = planned.kept,
                         .file = {},
                         .counts = {}});
      if (!stages_.back().outputs) stages_.back().outputs = stages_.back().made;
    }
  }

  /// Runs tasks until the job has ended.
  void work() {
    std::unique_lock lock{mutex_};
    while (!has_ended()) {
      const auto id = scheduler_.next();
      if (!id) {
        changed_.wait(lock);
        continue;
      }
      Task task = make_task(*id);
      show(id->stage);
      lock.unlock();
      const auto begin = std::chrono::steady_clock::now();
      Result<Output> output = run(*id, task);
      std::optional<Error> fault;
      if (options_.on_task)
        fault = call("on_task", [&] {
          options_.on_task({.action = number_,
                            .stage = id->stage,
                            .description = &plan_.stages[id->stage].stage->description,
                            .part = id->part,
                            .begin = begin,
                            .end = std::chrono::steady_clock::now(),
                            .counts = task.counts(),
                            .has_failed = !output});
        });
      lock.lock();
      if (!callback_error_) callback_error_ = std::move(fault);
      report(*id, task, std::move(output));
      changed_.notify_all();
    }
  }

  /// Keeps the outputs of cached stages for later jobs. Returns the outputs of the last stage, or
  /// the job's error. Requires: all calls of work() have returned.
  Result<std::vector<Output>> finish() {
    if (callback_error_) return *callback_error_;
    if (const Error* error = scheduler_.error()) return *error;
    for (std::size_t id = 0; id < stages_.size(); ++id)
      if (const auto& kept = plan_.stages[id].stage->kept; kept && !plan_.stages[id].kept)
        kept->set(stages_[id].outputs);
    return *stages_.back().outputs;
  }

 private:
  struct StageRun {
    /// The outputs that the tasks of this job have made.
    std::shared_ptr<KeptOutputs::Parts> made;
    /// The outputs that later stages read: `made`, or those that an earlier job has kept.
    std::shared_ptr<const KeptOutputs::Parts> outputs;
    std::shared_ptr<SpillFile> file;
    Part parts_done = 0;
    TaskCounts counts = {};
  };

  [[nodiscard]] bool has_ended() const { return callback_error_ || scheduler_.has_ended(); }

  /// Calls one of the user's callbacks, whose name is `name`. Returns an Error if it throws.
  template <class F>
  static std::optional<Error> call(const char* name, F&& run) {
    auto called = catch_errors([&]() -> Result<void> {
      run();
      return {};
    });
    if (called) return std::nullopt;
    return std::move(called).error().within(name);
  }

  Task make_task(const TaskId& id) {
    std::vector<StageOutputs> inputs;
    for (const StageId input : plan_.stages[id.stage].inputs)
      inputs.push_back({plan_.stages[input].stage.get(), stages_[input].outputs});
    const bool is_last_attempt = id.attempt + 1 == scheduler_.attempts_max();
    return Task{id.part, is_last_attempt,   std::move(inputs),
                memory_, file_of(id.stage), options_.is_stopped};
  }

  /// Returns the spill file that all tasks of the stage share. The disk has no such file until a
  /// task writes to it.
  const std::shared_ptr<SpillFile>& file_of(StageId id) {
    StageRun& stage = stages_[id];
    if (!stage.file) stage.file = memory_.make_spill_file();
    return stage.file;
  }

  Result<Output> run(const TaskId& id, Task& task) {
    return catch_errors([&]() -> Result<Output> {
      if (options_.is_stopped && options_.is_stopped()) return Error{"the job was stopped"};
      return plan_.stages[id.stage].stage->run(task);
    });
  }

  void show(StageId id) {
    if (!options_.on_progress || callback_error_) return;
    callback_error_ = call("on_progress", [&] {
      options_.on_progress({.action = number_,
                            .stage = id,
                            .description = &plan_.stages[id].stage->description,
                            .parts_done = stages_[id].parts_done,
                            .counts = stages_[id].counts});
    });
  }

  void report(const TaskId& id, const Task& task, Result<Output> output) {
    if (!output) {
      scheduler_.on_failed(id, std::move(output).error());
      return;
    }
    StageRun& stage = stages_[id.stage];
    (*stage.made)[id.part] = *std::move(output);
    ++stage.parts_done;
    stage.counts += task.counts();
    show(id.stage);
    for (const StageId unneeded : scheduler_.on_done(id))
      if (!plan_.stages[unneeded].stage->kept) stages_[unneeded] = {};
  }

  const std::uint64_t number_;
  const Plan plan_;
  const ThreadRunnerOptions& options_;
  Scheduler scheduler_;
  TaskMemory& memory_;
  std::vector<StageRun> stages_;
  /// The first exception of a callback, which ends the job.
  std::optional<Error> callback_error_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace

Result<std::vector<Output>> ThreadRunner::run(const StagePtr& last) {
  JobRun job{jobs_++, make_plan(last), options_, *memory_};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < options_.threads; ++i) threads.emplace_back([&] { job.work(); });
    job.work();
  }
  return job.finish();
}

Result<StagePtr> ThreadRunner::keep(const StagePtr& stage, const StagePtr&) {
  if (auto made = run(stage); !made) return std::move(made).error();
  return without_lineage(stage);
}

}  // namespace starling::flow
