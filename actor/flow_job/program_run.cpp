#include "starling/actor/flow_job/program_run.hpp"

#include "starling/actor/caf.hpp"
#include "starling/actor/compute/task.hpp"
#include "starling/base/seconds.hpp"

namespace starling::actor {

void ProgramRun::start(FlowMemberActor member) {
  const std::lock_guard lock{mutex_};
  if (is_cancelled_ || thread_.joinable()) return;
  member_ = std::move(member);
  thread_ = std::thread{[this] { run_program(); }};
}

void ProgramRun::run_program() {
  // Waits until `thread_` is set: start() holds the lock until then.
  { const std::lock_guard lock{mutex_}; }
  const auto begin = std::chrono::steady_clock::now();
  Result<wire::FlowResult> result = Error{"failed"};
  auto fault = run_catching([&] {
    // The engine must not keep this object alive, because the object's destructor waits for this
    // thread.
    const std::shared_ptr<flow::Runner> runner{std::shared_ptr<void>{}, this};
    const flow::MapReduce engine = flow::MapReduce::over(options_->engine, runner, memory_);
    result = options_->program(engine);
  });
  if (fault) result = Error{*fault};
  FlowProgramEnded ended;
  std::optional<FlowMemberActor> member;
  {
    const std::lock_guard lock{mutex_};
    member = member_;
    if (result) {
      result_ = *std::move(result);
      result_->is_known = true;
      result_->seconds = seconds_since(begin);
    } else {
      ended.error =
          is_cancelled_ ? "stopped" : result.error().message.substr(0, exception_text_max);
    }
  }
  if (member) post(*member, std::move(ended));
}

std::shared_ptr<const void> ProgramRun::begin_task() {
  const std::lock_guard lock{mutex_};
  if (is_cancelled_) return nullptr;
  ++tasks_;
  return {this, [self = shared_from_this()](const void*) {
            {
              const std::lock_guard task_lock{self->mutex_};
              --self->tasks_;
            }
            self->changed_.notify_all();
          }};
}

void ProgramRun::end_action(Result<std::vector<flow::Output>> outputs) {
  {
    const std::lock_guard lock{mutex_};
    outputs_ = std::move(outputs);
  }
  changed_.notify_all();
}

void ProgramRun::cancel() {
  {
    const std::lock_guard lock{mutex_};
    is_cancelled_ = true;
  }
  changed_.notify_all();
}

void ProgramRun::end() {
  cancel();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock{mutex_};
  member_.reset();
}

std::optional<wire::FlowResult> ProgramRun::result() const {
  const std::lock_guard lock{mutex_};
  return result_;
}

Result<std::vector<flow::Output>> ProgramRun::run(const flow::StagePtr& last) {
  return run_action(last, true, nullptr);
}

Result<flow::StagePtr> ProgramRun::keep(const flow::StagePtr& stage, const flow::StagePtr& former) {
  if (auto done = run_action(stage, false, former); !done) return std::move(done).error();
  return stage;
}

Result<std::vector<flow::Output>> ProgramRun::run_action(const flow::StagePtr& last, bool gathers,
                                                         const flow::StagePtr& former) {
  if (std::this_thread::get_id() != thread_.get_id())
    return Error{
        "a function of a data set needs the result of another one; valid on several nodes: only "
        "the program itself asks for results, outside of such functions"};
  std::unique_lock lock{mutex_};
  if (is_cancelled_) return Error{"the job was stopped"};
  for (const core::StageName& name : builder_.take_released())
    post(*member_, FlowInput{core::ReleaseStage{name}});
  auto built = builder_.build(last, gathers);
  if (!built) return std::move(built).error();
  post(*member_,
       FlowActionBegun{built->action, std::make_shared<const flow::Plan>(std::move(built->plan))});
  if (former) post(*member_, FlowInput{core::ReleaseStage{builder_.name_of(*former)}});
  changed_.wait(lock, [this] { return (is_cancelled_ || outputs_) && tasks_ == 0; });
  if (is_cancelled_) return Error{"the job was stopped"};
  auto outputs = *std::move(outputs_);
  outputs_.reset();
  return outputs;
}

}  // namespace starling::actor
