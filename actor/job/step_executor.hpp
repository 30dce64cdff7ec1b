/// Executes the steps of a worker's actor: runs the job's code on the compute pool, and holds each
/// update back for the job's injected delay. Used by the actors of jobs only.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "starling/actor/job/host.hpp"
#include "starling/base/straggler.hpp"

namespace starling::actor {

/// Which thread runs the job's code: always one of the pool, or the actor's own if the code takes
/// less time than waking another thread.
enum class ExecutionThread { pool, own_if_brief };

/// For use by the class `Actor`, which handles Planned, Computed and ComputeFailed.
template <class Actor>
class StepExecutor {
 public:
  using Handle = typename InterfaceOf<Actor>::type;

  /// Requires: code that may wait for actors runs on the pool (ExecutionThread::pool).
  StepExecutor(JobContextPtr job_context, core::MemberId id,
               ExecutionThread thread = ExecutionThread::pool)
      : job_context_(std::move(job_context)), id_(id), thread_(thread) {}

  /// Runs the job's code that chooses which ranges the step after `step` reads. Sends `self` the
  /// result as Planned.
  void plan(const Handle& self, core::Step step) {
    run([job_context = job_context_, heuristic = heuristic_, self, id = id_, step](Scratch&) {
      attempt(self, step, [&] {
        auto wanted =
            heuristic->measure(*job_context, [&] { return job_context->task->plan(id, step); });
        post(*job_context, self, actor::Planned{step, std::move(wanted)});
      });
    });
  }

  /// Computes a step, and sends `self` the update as Computed. Then, while the update and the next
  /// values are in flight, the pool's thread prefetches the next step's data, unless other work
  /// waits for a thread.
  void compute(const Handle& self, core::Compute& compute) {
    const bool on_pool = job_context_->pool->has_threads() && !runs_inline();
    run([job_context = job_context_, heuristic = heuristic_, self, id = id_, step = compute.step,
         on_pool, values = std::move(compute.values)](Scratch& scratch) mutable {
      attempt(self, step, [&] {
        const core::Time started_at = job_context->now();
        StepResult result = heuristic->measure(*job_context, [&] {
          return job_context->task->compute({id, step, values}, scratch);
        });
        const core::Time took = job_context->now() - started_at;
        values.clear();  // releases the values, so that owners may update their ranges in place
        if (result.fault)
          return actor::post(self, actor::ComputeFailed{step, *std::move(result.fault), true});
        post(*job_context, self,
             actor::Computed{step, std::move(result.update), result.loss, took});
      });
      // If prefetch() throws, the next step will throw too, and report it.
      if (!on_pool || job_context->pool->queue_size() > 0) return;
      (void)run_catching([&] { job_context->task->prefetch(id, step + 1, scratch); });
    });
  }

  /// Holds an update back for its injected delay. Returns the time from which take_due() returns
  /// the update: now if there is no delay.
  core::Time hold_back(const actor::Computed& computed, Random& random) {
    const auto delay = job_context_->delay.draw(random);
    const double factor =
        id_ < job_context_->slowdown_factors.size() ? job_context_->slowdown_factors[id_] : 1;
    const auto wait = extra_delay(computed.duration, delay, factor);
    if (!skips_delays_ && wait > core::Time{0})
      delayed_ += extra_delay(core::Time{0}, delay, factor);
    held_back_update_ = computed;
    held_back_until_ =
        job_context_->now() + (skips_delays_ ? core::Time{0} : std::max(core::Time{0}, wait));
    return held_back_until_;
  }

  /// Returns the update that is held back, once its delay is over; else nullopt.
  std::optional<actor::Computed> take_due() {
    if (!held_back_update_ || held_back_until_ > job_context_->now()) return std::nullopt;
    computed_ += held_back_update_->duration;
    loss_sum_ += held_back_update_->loss;
    ++loss_count_;
    return std::exchange(held_back_update_, std::nullopt);
  }

  /// Ends the injected delays, because the job is stopping: the update that is held back is due
  /// now, and each later one as soon as it is computed.
  void skip_delays() {
    skips_delays_ = true;
    if (!held_back_update_) return;
    const core::Time now = job_context_->now();
    delayed_ -= std::max(core::Time{0}, held_back_until_ - now);
    held_back_until_ = std::min(held_back_until_, now);
  }

  /// Sets the fields of a report that this class counts: times and losses.
  void fill_report(actor::Report& report) const {
    report.computed = computed_;
    report.delayed = delayed_;
    report.loss_sum = loss_sum_;
    report.loss_count = loss_count_;
  }

 private:
  /// Decides whether the job's code is brief: whether each of its last `brief_runs_needed_` runs
  /// took less than `brief_max`. When code that is brief takes longer once, the number needed grows
  /// eightfold, so that such code blocks its actor a few times at most.
  class InlineHeuristic {
   public:
    /// Runs the code and measures its time, even if it throws.
    template <class F>
    auto measure(const JobContext& job_context, F code) {
      const Stopwatch stopwatch{*this, job_context, job_context.now()};
      return code();
    }
    [[nodiscard]] bool is_brief() const { return brief_runs_ >= brief_runs_needed_; }

   private:
    static constexpr core::Time brief_max = std::chrono::microseconds{20};

    struct Stopwatch {
      InlineHeuristic& heuristic;
      const JobContext& job_context;
      core::Time started_at;
      Stopwatch(InlineHeuristic& target, const JobContext& context, core::Time now)
          : heuristic(target), job_context(context), started_at(now) {}
      Stopwatch(const Stopwatch&) = delete;
      Stopwatch& operator=(const Stopwatch&) = delete;
      ~Stopwatch() { heuristic.add(job_context.now() - started_at); }
    };

    void add(core::Time took) {
      if (took >= brief_max && is_brief()) brief_runs_needed_ = 8 * brief_runs_needed_;
      brief_runs_ = took < brief_max ? brief_runs_ + 1 : 0;
    }

    std::atomic<std::uint64_t> brief_runs_ = 0;
    std::atomic<std::uint64_t> brief_runs_needed_ = 32;
  };

  [[nodiscard]] bool runs_inline() const {
    return thread_ == ExecutionThread::own_if_brief && job_context_->pool->has_threads() &&
           heuristic_->is_brief();
  }

  template <class Work>
  void run(Work work) {
    if (runs_inline())
      work(scratch_);
    else
      job_context_->pool->submit(std::move(work));
  }

  /// Sends `message` to `self`. If the pool has threads, `self` handles the message on the calling
  /// thread, so that no other thread has to wake up.
  template <class Message>
  static void post(const JobContext& job_context, const Handle& self, Message message) {
    if (job_context.pool->has_threads())
      actor::post_and_run(self, std::move(message));
    else
      actor::post(self, std::move(message));
  }

  /// Runs `f`, which calls the job's code; if that throws, sends `self` a ComputeFailed.
  template <class F>
  static void attempt(const Handle& self, core::Step step, F&& f) noexcept {
    if (auto fault = run_catching(f))
      actor::post(self, actor::ComputeFailed{step, *std::move(fault)});
  }

  JobContextPtr job_context_;
  core::MemberId id_;
  ExecutionThread thread_;
  std::shared_ptr<InlineHeuristic> heuristic_ = std::make_shared<InlineHeuristic>();
  /// Scratch memory for code that runs on the actor's thread.
  Scratch scratch_;
  std::optional<actor::Computed> held_back_update_;
  core::Time held_back_until_{};
  bool skips_delays_ = false;
  core::Time computed_{};
  core::Time delayed_{};
  double loss_sum_ = 0;
  std::uint64_t loss_count_ = 0;
};

}  // namespace starling::actor
