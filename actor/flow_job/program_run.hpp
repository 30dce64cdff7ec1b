/// Runs the program of one member of a flow on a thread of its own. Passes the program's actions to
/// the member's actor, which brings back their results.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/flow_job/flow_job.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/engine/core/flow/action_builder.hpp"
#include "starling/engine/flow/plan/runner.hpp"

namespace starling::actor {

/// Thread-safe.
class ProgramRun final : public flow::Runner, public std::enable_shared_from_this<ProgramRun> {
 public:
  ProgramRun(std::shared_ptr<const FlowJobOptions> options,
             std::shared_ptr<flow::SpillFolder> memory)
      : options_(std::move(options)), memory_(std::move(memory)) {}
  ~ProgramRun() override { end(); }
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// Starts the program. Requires: called once.
  void start(FlowMemberActor member);
  /// Counts a task of the program's action until the returned object is destroyed. The program does
  /// not go on before that, because the functions of tasks may use variables on the program's
  /// stack. Returns null after cancel(): the task must not run, because the program may have
  /// returned.
  [[nodiscard]] std::shared_ptr<const void> begin_task();
  /// Ends the action in which the program waits, with its results.
  void end_action(Result<std::vector<flow::Output>> outputs);
  /// Ends this action and all later ones with an error, so that the program returns.
  void cancel();
  /// Waits until the program has returned, after cancel(). Not to be called by the program.
  void end();

  /// Returns the result of the program once it has returned without an error; else nullopt.
  [[nodiscard]] std::optional<wire::FlowResult> result() const;

  Result<std::vector<flow::Output>> run(const flow::StagePtr& last) override;
  Result<flow::StagePtr> keep(const flow::StagePtr& stage, const flow::StagePtr& former) override;
  [[nodiscard]] flow::Part default_parts() const override { return options_->engine.parts; }

 private:
  void run_program();
  Result<std::vector<flow::Output>> run_action(const flow::StagePtr& last, bool gathers,
                                               const flow::StagePtr& former);

  const std::shared_ptr<const FlowJobOptions> options_;
  const std::shared_ptr<flow::SpillFolder> memory_;
  /// Used by the program's thread only.
  core::ActionBuilder builder_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// Absent before the program starts, and after end().
  std::optional<FlowMemberActor> member_;
  bool is_cancelled_ = false;
  /// The number of objects that begin_task() has returned and that are not destroyed yet.
  std::size_t tasks_ = 0;
  /// The results of the current action, once it has ended.
  std::optional<Result<std::vector<flow::Output>>> outputs_;
  std::optional<wire::FlowResult> result_;
  std::thread thread_;
};

}  // namespace starling::actor
