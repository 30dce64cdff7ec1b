/// Executes the steps of a worker: runs the job's code on the compute pool, or on the actor's
/// thread if the code is brief and that thread is not a network thread, and holds each update back
/// for the job's injected delay. If workers hand in early, the delay comes before the computation:
/// it stands for computing, so its elapsed part says how many samples the worker would have
/// processed.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "starling/actor/job/job_context.hpp"
#include "starling/actor/thread_priority.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/straggler.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/work/compressor.hpp"
#include "starling/engine/work/descent.hpp"

namespace starling::actor {

/// For use by a member's actor, which handles Planned, PartsComputed, Computed and ComputeFailed.
class StepExecutor {
  /// Decides whether the job's code is brief: whether its runs take less than `brief_max` on
  /// average. The average forgets old runs, and starts too high: code is known to be brief after
  /// some tens of runs. A run counts with at most `counted_max`, because one that was interrupted
  /// says little.
  class InlineHeuristic {
   public:
    /// Runs the code and measures its time, even if it throws.
    template <class F>
    auto measure(const JobContext& job_context, F code) {
      const Stopwatch stopwatch{*this, job_context, job_context.now()};
      return code();
    }
    [[nodiscard]] bool is_brief() const { return mean_ns_ < brief_max.count(); }

   private:
    static constexpr core::Time brief_max = std::chrono::microseconds{20};
    static constexpr core::Time counted_max = 10 * brief_max;
    /// After one run that takes this long, code counts as not brief for about the next 70 runs.
    static constexpr core::Time not_brief_min = std::chrono::milliseconds{2};
    static constexpr std::int64_t runs_remembered = 32;

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
      if (took >= not_brief_min) mean_ns_ = counted_max.count();
      mean_ns_ += (std::min(took, counted_max).count() - mean_ns_) / runs_remembered;
    }

    /// Written by one thread at a time: a worker makes one step after the other.
    std::atomic<std::int64_t> mean_ns_ = counted_max.count();
  };

 public:
  StepExecutor(JobContextPtr job_context, core::MemberId id)
      : job_context_(std::move(job_context)), id_(id) {}

  /// Runs the job's code that chooses which ranges a step reads. Sends `self` the result as
  /// Planned.
  void plan(const MemberActor& self, const core::Plan& plan) {
    run(plan_heuristic_,
        [job_context = job_context_, heuristic = plan_heuristic_, self, id = id_, plan](Scratch&) {
          attempt(self, plan.step, [&] {
            auto ranges = heuristic->measure(*job_context, [&] {
              return job_context->task->plan({id, plan.step, plan.share, {}});
            });
            post(*job_context, self, actor::Planned{plan.step, std::move(ranges)});
          });
        });
  }

  /// Computes a step, and sends `self` the update as Computed. Sends parts of the update as
  /// PartsComputed before that, unless an injected delay or a straggler's slowdown holds updates
  /// back. Then, while the update and the next values are in flight, the pool's thread prefetches
  /// the next step's data, unless other work waits for a thread.
  void compute(const MemberActor& self, core::Compute& compute) {
    const bool on_pool = job_context_->pool->has_threads() && !runs_inline(*compute_heuristic_);
    const std::shared_ptr<Task>& task = job_context_->task;
    if (const auto rule = task->compression(); models::compresses(rule) && !compressor_)
      compressor_ = std::make_shared<core::UpdateCompressor>(
          rule, std::shared_ptr<const core::Layout>{task, &task->layout()});
    hands_in_early_ = compute.share.taken.has_value();
    hand_in_ = hands_in_early_ ? std::make_shared<std::atomic<bool>>(false) : nullptr;
    computed_step_ = compute.step;
    run(compute_heuristic_, [job_context = job_context_, heuristic = compute_heuristic_, self,
                             compressor = compressor_, id = id_, step = compute.step,
                             share = compute.share, on_pool, samples_max = compute.samples_max,
                             hand_in = hand_in_, values = std::move(compute.values),
                             former = std::move(compute.former),
                             gives_parts = !holds_back()](Scratch& scratch) mutable {
      attempt(self, step, [&] {
        const core::Time started_at = job_context->now();
        StepInput input{
            id, step, share, values, {.samples_max = samples_max, .hand_in = hand_in.get()}};
        if (gives_parts)
          input.on_parts = [&](core::EarlyParts parts) {
            actor::post(self, actor::PartsComputed{step, std::move(parts)});
          };
        StepResult result = heuristic->measure(*job_context, [&] {
          StepResult computed = job_context->task->compute(input, scratch);
          if (compressor && !computed.fault) compressor->compress(computed.update);
          return computed;
        });
        if (former && !result.fault)
          result.update.descent =
              core::descent_from(*former, values, result.update.parts, job_context->task->layout());
        const core::Time took = job_context->now() - started_at;
        former.reset();
        if (job_context->visits && !result.fault && share.taken)
          job_context->visits->add(share, result.update.samples, job_context->now());
        values.clear();  // releases the values, so that owners may update their ranges in place
        if (result.fault)
          return actor::post(self,
                             actor::ComputeFailed{
                                 .step = step, .why = *std::move(result.fault), .is_fatal = true});
        post(*job_context, self, actor::Computed{step, std::move(result.update), took});
      });
      // If prefetch() throws, the next step will throw too, and report it. If workers hand in
      // early, the next samples are not known yet.
      if (!on_pool || share.taken || job_context->pool->queue_size() > 0) return;
      (void)run_catching([&] { job_context->task->prefetch({id, step + 1, share, {}}, scratch); });
    });
  }

  /// If workers hand in early: defers the computation by the injected delay, and by the slowdown of
  /// a straggler, which is predicted from its last computation. Returns the time at which
  /// take_deferred() returns the computation, or nullopt if it is due at once. The job's delays are
  /// those of a whole batch; the delay of fewer samples is shorter in proportion.
  std::optional<core::Time> defer(core::Compute& compute, Random& random) {
    was_deferred_ = false;
    if (!compute.share.taken || skips_delays_) return std::nullopt;
    const core::Time predicted{
        static_cast<core::Time::rep>(ns_per_sample_ * static_cast<double>(compute.samples_max))};
    const double batches = static_cast<double>(compute.samples_max) /
                           static_cast<double>(compute.share.order->batch_size());
    const core::Time drawn{static_cast<core::Time::rep>(
        batches * static_cast<double>(job_context_->delay.draw(random).count()))};
    const core::Time wait = extra_delay(predicted, drawn, slowdown());
    if (wait <= core::Time{0}) return std::nullopt;
    const core::Time now = job_context_->now();
    deferred_compute_ = Deferred{std::move(compute), now, now + wait,
                                 extra_delay(core::Time{0}, drawn, slowdown())};
    return deferred_compute_->due_at;
  }

  /// Returns the deferred computation if it is due; else nullopt.
  std::optional<core::Compute> take_deferred() {
    if (!deferred_compute_ || deferred_compute_->due_at > job_context_->now()) return std::nullopt;
    delay_time_ += deferred_compute_->delay;
    was_deferred_ = deferred_compute_->delay > core::Time{0};
    core::Compute compute = std::move(deferred_compute_->compute);
    deferred_compute_.reset();
    return compute;
  }

  /// Makes the worker hand in what it has of the step after `step`. A running computation ends with
  /// the current micro-batch, unless an injected delay came before it: that delay stood for
  /// computing all of its samples. A deferred computation is cut to the samples begun so far, at
  /// least one, and its delay to the delay of these samples. Returns the end of that delay, at
  /// which the caller must call take_deferred(); nullopt if nothing was deferred, or if the delay
  /// is over already.
  std::optional<core::Time> hand_in(core::Step step) {
    if (hand_in_ && computed_step_ == step && !was_deferred_) hand_in_->store(true);
    if (!deferred_compute_ || deferred_compute_->compute.step != step) return std::nullopt;
    const core::Time now = job_context_->now();
    if (deferred_compute_->due_at <= now) return std::nullopt;
    std::uint64_t& samples = deferred_compute_->compute.samples_max;
    const core::Time began_at = deferred_compute_->began_at;
    const std::uint64_t begun =
        core::samples_begun(samples, now - began_at, deferred_compute_->due_at - began_at);
    const double share = static_cast<double>(begun) / static_cast<double>(samples);
    samples = begun;
    shorten_delay(began_at + part_of(deferred_compute_->due_at - began_at, share));
    return deferred_compute_->due_at;
  }

  /// Holds an update back for its injected delay, unless the delay came before. Returns the time
  /// from which take_due() returns the update: now if there is no delay.
  core::Time hold_back(const actor::Computed& computed, Random& random) {
    if (hands_in_early_) {
      if (computed.update.samples > 0)
        ns_per_sample_ = static_cast<double>(computed.duration.count()) / computed.update.samples;
      held_back_update_ = computed;
      return held_back_until_ = job_context_->now();
    }
    const auto delay = job_context_->delay.draw(random);
    const double factor = slowdown();
    const auto wait = extra_delay(computed.duration, delay, factor);
    held_back_for_delay_ = !skips_delays_ && wait > core::Time{0}
                               ? extra_delay(core::Time{0}, delay, factor)
                               : core::Time{0};
    delay_time_ += held_back_for_delay_;
    held_back_update_ = computed;
    held_back_until_ =
        job_context_->now() + (skips_delays_ ? core::Time{0} : std::max(core::Time{0}, wait));
    return held_back_until_;
  }

  /// Returns the update that is held back, once its delay is over; else nullopt.
  std::optional<actor::Computed> take_due() {
    if (!held_back_update_ || held_back_until_ > job_context_->now()) return std::nullopt;
    compute_time_ += held_back_update_->duration;
    if (const auto loss = held_back_update_->update.loss) {
      loss_sum_ += *loss;
      ++loss_count_;
    }
    if (!first_step_) first_step_ = held_back_update_->step;
    return std::exchange(held_back_update_, std::nullopt);
  }

  /// Ends the injected delays, because the job is stopping: the update that is held back is due
  /// now, and each later one as soon as it is computed.
  void skip_delays() {
    skips_delays_ = true;
    if (deferred_compute_) shorten_delay(std::min(deferred_compute_->due_at, job_context_->now()));
    if (!held_back_update_) return;
    const core::Time now = job_context_->now();
    // The rest of the wait may also be a straggler's slowdown, which is not an injected delay.
    delay_time_ -= std::clamp(held_back_until_ - now, core::Time{0}, held_back_for_delay_);
    held_back_until_ = std::min(held_back_until_, now);
  }

  /// Sets the fields of a report that this class counts: times, losses and updates. Requires:
  /// `report.step` is set.
  void fill_report(actor::Report& report) const {
    report.compute_time = compute_time_;
    report.delay_time = delay_time_;
    report.loss_sum = loss_sum_;
    report.loss_count = loss_count_;
    report.updates = first_step_ ? report.step - *first_step_ : 0;
  }

 private:
  /// A deferred computation: it waits from `began_at` to `due_at`. `delay` is the part of this time
  /// that is an injected delay; the rest is a straggler's slowdown.
  struct Deferred {
    core::Compute compute;
    core::Time began_at;
    core::Time due_at;
    core::Time delay;
  };

  [[nodiscard]] static core::Time part_of(core::Time time, double share) {
    return to_duration(share * static_cast<double>(time.count()));
  }

  /// Makes the deferred computation due at `due_at`. Requires: there is one, and `due_at` is not
  /// after the present end of its delay.
  void shorten_delay(core::Time due_at) {
    Deferred& deferred = *deferred_compute_;
    if (deferred.due_at == due_at) return;
    const double share =
        in_seconds(due_at - deferred.began_at) / in_seconds(deferred.due_at - deferred.began_at);
    deferred.delay = part_of(deferred.delay, share);
    deferred.due_at = due_at;
  }

  /// True if updates of this worker may be held back. Such a worker sends no early parts, because
  /// they would not be held back.
  [[nodiscard]] bool holds_back() const {
    return !std::holds_alternative<laws::None>(job_context_->delay.law()) || slowdown() != 1;
  }

  /// The factor by which this worker's steps are slowed down.
  [[nodiscard]] double slowdown() const {
    const auto& factors = job_context_->slowdown_factors;
    return id_ < factors.size() ? factors[id_] : 1;
  }

  /// True if the actor's own thread runs the job's code: if the code takes less time than waking
  /// another thread. A network thread never runs it, because code that was brief before may still
  /// never return.
  [[nodiscard]] bool runs_inline(const InlineHeuristic& heuristic) const {
    return heuristic.is_brief() && !is_network_thread() && job_context_->pool->has_threads() &&
           !job_context_->task->waits_for_actors();
  }

  /// Scratch memory for code that runs on an actor's thread.
  static Scratch& scratch_of_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }

  template <class Work>
  void run(const std::shared_ptr<InlineHeuristic>& heuristic, Work work) {
    if (runs_inline(*heuristic))
      work(scratch_of_thread());
    else
      job_context_->pool->submit(std::move(work));
  }

  /// Sends `message` to `self`. If the pool has threads, `self` handles the message on the calling
  /// thread, so that no other thread has to wake up.
  template <class Message>
  static void post(const JobContext& job_context, const MemberActor& self, Message message) {
    if (job_context.pool->has_threads())
      actor::post_and_run(self, std::move(message));
    else
      actor::post(self, std::move(message));
  }

  /// Runs `f`, which calls the job's code, and reports an exception to `self` as ComputeFailed.
  template <class F>
  static void attempt(const MemberActor& self, core::Step step, F&& f) noexcept {
    if (auto fault = run_catching(f))
      actor::post(self, actor::ComputeFailed{step, *std::move(fault)});
  }

  JobContextPtr job_context_;
  core::MemberId id_;
  std::shared_ptr<InlineHeuristic> plan_heuristic_ = std::make_shared<InlineHeuristic>();
  std::shared_ptr<InlineHeuristic> compute_heuristic_ = std::make_shared<InlineHeuristic>();
  /// Null before the first step, and if the worker sends whole updates. One step at a time uses it.
  std::shared_ptr<core::UpdateCompressor> compressor_;
  std::optional<actor::Computed> held_back_update_;
  core::Time held_back_until_{};
  /// The injected delay in the time for which the update is held back.
  core::Time held_back_for_delay_{};
  bool skips_delays_ = false;
  bool hands_in_early_ = false;
  /// True if the last computation came after an injected delay.
  bool was_deferred_ = false;
  std::optional<Deferred> deferred_compute_;
  /// If workers hand in early: the flag that ends the computation that was begun last.
  std::shared_ptr<std::atomic<bool>> hand_in_;
  /// The number of steps that the worker had finished when that computation was begun.
  core::Step computed_step_ = 0;
  /// How long a sample took in the last computation.
  double ns_per_sample_ = 0;
  core::Time compute_time_{};
  core::Time delay_time_{};
  double loss_sum_ = 0;
  std::uint64_t loss_count_ = 0;
  /// The number of steps that the worker had finished before its first update here.
  std::optional<core::Step> first_step_;
};

}  // namespace starling::actor
