/// Executes the steps of a worker's actor: runs the job's code on the compute pool, and keeps each
/// update back for the delay that the job injects into its steps. Used by the actors of jobs only.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "starling/actor/job/host.hpp"
#include "starling/base/straggler.hpp"

namespace starling::actor {

/// Where the job's code runs: on the pool, or on the actor's own thread if the code takes less time
/// than waking another thread.
enum class ExecutorPlace { pool, own_thread_if_brief };

/// `Handle` is of an actor that takes Planned, Computed and ComputeFailed.
template <class Handle>
class StepExecutor {
 public:
  /// Code that may wait for actors needs the pool.
  StepExecutor(JobContextPtr job_context, core::MemberId id,
               ExecutorPlace place = ExecutorPlace::pool)
      : job_context_(std::move(job_context)), id_(id), place_(place) {}

  /// Has the job plan what the step after `step` reads, and notifies `self`.
  void plan(const Handle& self, core::Step step) {
    run([job_context = job_context_, heuristic = heuristic_, self, id = id_, step](Scratch&) {
      attempt(self, step, [&] {
        auto wanted =
            heuristic->note(*job_context, [&] { return job_context->task->plan(id, step); });
        post(*job_context, self, actor::Planned{step, std::move(wanted)});
      });
    });
  }

  /// Has a step computed, and notifies `self`. While the update and the next values are in flight,
  /// the thread has the next step's data prefetched, unless other tasks wait for it.
  void compute(const Handle& self, core::Compute& compute) {
    const bool on_pool = job_context_->pool->has_threads() && !runs_here();
    run([job_context = job_context_, heuristic = heuristic_, self, id = id_, step = compute.step,
         on_pool, values = std::move(compute.values)](Scratch& scratch) mutable {
      attempt(self, step, [&] {
        const core::Time began = job_context->now();
        StepResult result = heuristic->note(*job_context, [&] {
          return job_context->task->compute({id, step, values}, scratch);
        });
        const core::Time took = job_context->now() - began;
        values.clear();  // owners may then change their ranges in place
        if (result.fault)
          return actor::post(self, actor::ComputeFailed{step, *std::move(result.fault), true});
        post(*job_context, self,
             actor::Computed{step, std::move(result.update), result.loss, took});
      });
      // Prefetches on a pool's thread only. If prefetch() throws, the step will throw too.
      if (!on_pool || job_context->pool->waiting() > 0) return;
      (void)fault_of([&] { job_context->task->prefetch(id, step + 1, scratch); });
    });
  }

  /// Keeps an update, and returns the time from which due() returns it: later than now if an
  /// injected delay keeps it back.
  core::Time keep(const actor::Computed& computed, Random& random) {
    const auto delay = job_context_->delay.draw(random);
    const double factor =
        id_ < job_context_->slowdown_factors.size() ? job_context_->slowdown_factors[id_] : 1;
    const auto wait = extra_delay(computed.took, delay, factor);
    if (!skips_delays_ && wait > core::Time{0})
      delayed_ += extra_delay(core::Time{0}, delay, factor);
    kept_update_ = computed;
    kept_until_ =
        job_context_->now() + (skips_delays_ ? core::Time{0} : std::max(core::Time{0}, wait));
    return kept_until_;
  }

  /// Returns the update that was kept, once its time has come; else nothing.
  std::optional<actor::Computed> due() {
    if (!kept_update_ || kept_until_ > job_context_->now()) return std::nullopt;
    computed_ += kept_update_->took;
    loss_sum_ += kept_update_->loss;
    ++losses_;
    return std::exchange(kept_update_, std::nullopt);
  }

  /// The job is stopping: the update that is kept is due now, and later ones at once.
  void skip_delays() {
    skips_delays_ = true;
    if (!kept_update_) return;
    const core::Time now = job_context_->now();
    delayed_ -= std::max(core::Time{0}, kept_until_ - now);
    kept_until_ = std::min(kept_until_, now);
  }

  /// Sets the fields of a report that count what was computed so far.
  void fill(actor::Report& report) const {
    report.computed = computed_;
    report.delayed = delayed_;
    report.loss_sum = loss_sum_;
    report.losses = losses_;
  }

 private:
  /// Counts how often in a row the job's code was brief. Code that was trusted to be brief, and
  /// once was not, must be brief eight times as often in a row to be trusted again. So it keeps its
  /// actor waiting a few times at most, whatever it does.
  class InlineHeuristic {
   public:
    /// Runs the code and counts its time, also where it throws.
    template <class F>
    auto note(const JobContext& job_context, F code) {
      const Watch watch{*this, job_context, job_context.now()};
      return code();
    }
    [[nodiscard]] bool is_brief() const { return in_a_row_ >= enough_; }

   private:
    static constexpr core::Time brief = std::chrono::microseconds{20};

    struct Watch {
      InlineHeuristic& heuristic;
      const JobContext& job_context;
      core::Time began;
      Watch(InlineHeuristic& kept, const JobContext& of, core::Time at)
          : heuristic(kept), job_context(of), began(at) {}
      Watch(const Watch&) = delete;
      Watch& operator=(const Watch&) = delete;
      ~Watch() { heuristic.add(job_context.now() - began); }
    };

    void add(core::Time took) {
      if (took >= brief && is_brief()) enough_ = 8 * enough_;
      in_a_row_ = took < brief ? in_a_row_ + 1 : 0;
    }

    std::atomic<std::uint64_t> in_a_row_ = 0;
    std::atomic<std::uint64_t> enough_ = 32;
  };

  [[nodiscard]] bool runs_here() const {
    return place_ == ExecutorPlace::own_thread_if_brief && job_context_->pool->has_threads() &&
           heuristic_->is_brief();
  }

  template <class Work>
  void run(Work work) {
    if (runs_here())
      work(scratch_);
    else
      job_context_->pool->submit(std::move(work));
  }

  /// Sends `message` to `self`. If the pool has threads, `self` handles it on the thread that
  /// computed, so that no other thread has to wake up.
  template <class Message>
  static void post(const JobContext& job_context, const Handle& self, Message message) {
    if (job_context.pool->has_threads())
      actor::post_and_run(self, std::move(message));
    else
      actor::post(self, std::move(message));
  }

  /// Runs the user's code; if it throws, sends `self` a ComputeFailed.
  template <class F>
  static void attempt(const Handle& self, core::Step step, F&& f) noexcept {
    if (auto fault = fault_of(f)) actor::post(self, actor::ComputeFailed{step, *std::move(fault)});
  }

  JobContextPtr job_context_;
  core::MemberId id_;
  ExecutorPlace place_;
  std::shared_ptr<InlineHeuristic> heuristic_ = std::make_shared<InlineHeuristic>();
  /// The scratch memory of code that runs on the actor's thread.
  Scratch scratch_;
  std::optional<actor::Computed> kept_update_;
  core::Time kept_until_{};
  bool skips_delays_ = false;
  core::Time computed_{};
  core::Time delayed_{};
  double loss_sum_ = 0;
  std::uint64_t losses_ = 0;
};

}  // namespace starling::actor
