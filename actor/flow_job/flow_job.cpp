#include "starling/actor/flow_job/flow_job.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "starling/actor/cluster/local_members.hpp"
#include "starling/actor/flow/spill_folder.hpp"
#include "starling/actor/flow_job/flow_host.hpp"
#include "starling/actor/system.hpp"

namespace starling::actor {

void FlowHost::execute(const core::RunTask& run_task) {
  // Orders and pieces may still come after the job was stopped here.
  auto counted = program_->begin_task();
  if (!counted) return;
  const auto is_stopped = [context = job_context_, has_ended = action_ended_] {
    return context->is_stopped || *has_ended;
  };
  std::shared_ptr<core::OutputStore::RunnableTask> runnable;
  const auto fault = run_catching([&] {
    runnable =
        std::make_shared<core::OutputStore::RunnableTask>(store_->make_task(run_task, is_stopped));
  });
  if (fault) return give(core::TaskEnded{run_task.task, "cannot begin: " + *fault, {}});
  // The pool is closed before the context is destroyed, so the task may use a plain pointer to the
  // context.
  job_context_->pool->submit([runnable, name = run_task.task, to = self(),
                              context = job_context_.get(),
                              counted = std::move(counted)](Scratch&) mutable {
    FlowPartEnded part{{name, {}, {}}, nullptr};
    context->counter.begin_task(name, context->now());
    if (auto why = run_catching([&] { part.output = runnable->stage->run(runnable->task); })) {
      part.ended.error = why->empty() ? "failed" : *why;
      part.output = nullptr;
    }
    part.ended.counts = runnable->task.counts();
    if (part.output) context->counter.end_task(name, part.ended.counts, context->now());
    runnable.reset();
    counted.reset();
    post(to, std::move(part));
  });
}

namespace {

class FlowJobImpl final : public LocalJob {
 public:
  FlowJobImpl(FlowJobOptions options, LocalJobOptions local)
      : local_(std::move(local)),
        config_(std::max(1U, std::thread::hardware_concurrency() / 2), ThreadPriority::members),
        system_(config_) {
    const CafThreadScope scope;  // this thread holds the logger, even if it spawns nothing
    context_->options = std::make_shared<const FlowJobOptions>(std::move(options));
    const flow::MapReduceOptions& engine = context_->options->engine;
    context_->memory = std::make_shared<flow::SpillFolder>(engine.spill_folder, engine.memory_bytes,
                                                           engine.spill_bytes_max);
    // The members of this process share the threads of the pool: one thread for each processor.
    context_->pool =
        std::make_unique<ComputePool>(std::max(1U, std::thread::hardware_concurrency()));
    context_->clock = &system_.clock();
    context_->start = context_->clock->now();
  }

  ~FlowJobImpl() override {
    context_->is_stopped = true;
    for (const auto& program : all_programs()) program->cancel();
    context_->pool->close();
    for (const auto& program : all_programs()) program->end();
    members_.close();
    await_actors(system_, local_.log);
  }
  FlowJobImpl(const FlowJobImpl&) = delete;
  FlowJobImpl& operator=(const FlowJobImpl&) = delete;

  void add_initial_members(const std::vector<core::Member>& local_members,
                           const core::ConfigurationPtr& first) override {
    for (const core::Member& member : local_members) spawn(member, first, {});
  }
  void add_joiner(const core::Member& self, const std::vector<core::MemberId>& seeds) override {
    spawn(self, nullptr, seeds);
  }
  void start_user_actors(const core::ConfigurationPtr&, OnStarted on_started) override {
    on_started({});
  }
  void start_members() override { members_.start(); }
  void deliver(core::Envelope envelope, bool may_handle_inline) override {
    members_.deliver(std::move(envelope), may_handle_inline);
  }
  void report_liveness(const LivenessUpdate& update) override {
    members_.post_to_all([update](const FlowMemberActor& member) { post(member, update); });
  }
  void stop() override {
    context_->is_stopped = true;
    members_.post_to_all([](const FlowMemberActor& member) { post(member, core::Stop{}); });
  }
  /// The parts of a flow are short, so a pause is not worth its cost.
  void pause(core::Time) override {}
  void leave() override {
    members_.post_to_all([](const FlowMemberActor& member) { post(member, leave_atom_v); });
  }
  void end_members(const std::vector<core::MemberId>& members) override {
    members_.end_members(members);
  }
  std::vector<MemberReport> reports() override { return members_.reports(); }
  core::ConfigurationPtr configuration() override { return members_.configuration(); }
  TraceBuffer::Part read_trace(std::uint64_t) override { return {}; }
  core::Time now() override { return context_->now(); }
  void read_ranges(const ReadRanges&,
                   std::function<void(std::vector<core::RangeState>)> on_read) override {
    on_read({});
  }
  std::optional<wire::FlowResult> result() override {
    for (const auto& program : all_programs())
      if (auto result = program->result()) return result;
    return std::nullopt;
  }
  wire::FlowReport flow_report() override { return context_->counter.report(); }

 private:
  void spawn(const core::Member& self, const core::ConfigurationPtr& first,
             const std::vector<core::MemberId>& seeds) {
    const FlowJobOptions& options = *context_->options;
    core::FlowOptions flow;
    flow.attempts_max = options.engine.attempts;
    flow.slots = self.works ? static_cast<std::uint32_t>(options.engine.threads) : 0;
    core::MemberOptions member =
        member_options(self, first, seeds, local_.members_max, options.wait_for_nodes);
    member.role = std::make_shared<const core::FlowOptions>(flow);
    auto program = std::make_shared<ProgramRun>(context_->options, context_->memory);
    {
      const std::lock_guard lock{mutex_};
      programs_.push_back(program);
    }
    const auto last_report = std::make_shared<LastReport>(self);
    const CafThreadScope scope;
    members_.add(self.id,
                 system_.spawn<FlowHost>(context_, std::move(member),
                                         members_.callbacks(last_report), std::move(program)),
                 last_report);
  }
  [[nodiscard]] std::vector<std::shared_ptr<ProgramRun>> all_programs() {
    const std::lock_guard lock{mutex_};
    return programs_;
  }

  LocalJobOptions local_;
  std::shared_ptr<FlowJobContext> context_ = std::make_shared<FlowJobContext>();
  Config config_;
  caf::actor_system system_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<ProgramRun>> programs_;
  LocalMembers<FlowMemberActor> members_{local_.send};
};

}  // namespace

Result<std::unique_ptr<LocalJob>> make_flow_job(FlowJobOptions options, LocalJobOptions local) {
  if (!options.program) return Error{"the flow's program is missing; valid: a function"};
  if (options.workers > local.members_max)
    return Error{"workers=" + std::to_string(options.workers) + " is too many; valid: up to " +
                 std::to_string(local.members_max)};
  auto engine = flow::complete(std::move(options.engine));
  if (!engine) return std::move(engine).error();
  options.engine = *std::move(engine);
  return std::unique_ptr<LocalJob>{
      std::make_unique<FlowJobImpl>(std::move(options), std::move(local))};
}

}  // namespace starling::actor
