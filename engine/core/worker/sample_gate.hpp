/// A worker's barrier in jobs in which no member sees every worker's step: the worker asks a few
/// random other workers for their steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/barrier/tuner.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/timer.hpp"
#include "starling/engine/core/worker/draw_weights.hpp"

namespace starling::core {

/// The ids of all workers of the job, ascending; samples are drawn from them. All workers of a job
/// in one process share one list. In a job on a cluster, each worker has a list of its own.
using WorkerIds = std::shared_ptr<const std::vector<MemberId>>;

/// A worker that has joined reports this step until it knows its first step. It is higher than
/// every other step, so no other worker waits for this worker.
inline constexpr Step not_begun = barrier::finished + 1;

/// Draws beta other workers and asks them for their steps. Decides when the first laggard (a worker
/// that lags more than the rule tolerates) has answered, when all have answered, or after
/// query_timeout. A worker that has not answered then counts as being at step 0. If the barrier is
/// weighted, the gate learns the weights of its draws from the answers (DrawWeights).
///
///     idle --begin--> asking --the rule lets the worker pass--> idle: the worker passes
///                       ^  \--the rule does not--> refused
///                       \--laggard has caught up, or interval is over--/
///
/// If the barrier decides by paces (barrier::needs_paces()), each answer contains the pace of its
/// sender. The first draw after a push then needs all answers: a laggard alone does not decide it.
/// A worker that does not answer counts as being at step 0, with no known times. The rule may
/// permit a run, which is several steps without a draw: begin() then lets the worker pass without
/// asking until its step is run_end().
///
/// A worker that joins asks other workers in the same way, to learn at which step to begin:
///
///     idle --enter--> entering --the first step is known--> idle: the worker begins
///                       ^  \--it is not known: the gate draws again--/
///
/// An event that returns bool returns true if the worker may now pass the barrier, or begin at
/// entry_step(). If the barrier tunes itself, the gate holds the worker's tuner. The tuner learns
/// from the answers, from the descents, and from the times at which the worker arrives and passes.
/// One call at a time; not thread-safe.
class SampleGate {
 public:
  SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self, WorkerIds workers);

  /// The worker has pushed the update of a step that took `step_time`. Call it after each step,
  /// before begin().
  void on_push(const Context& context, Time step_time);

  /// The worker has finished step `own_step`, and wants to pass the barrier. After a refusal, the
  /// gate draws again after `automatic_interval` in two cases: the job's recheck interval is
  /// `auto`; or there is no recheck interval, and the gate waits for no laggard's Notice. `descent`
  /// is the descent of the loss at this step; only a tuner uses it.
  [[nodiscard]] bool begin(const Context& context, Step own_step, Time automatic_interval,
                           std::optional<barrier::Descent> descent = std::nullopt);

  /// The worker has joined. A worker runs if it has begun and has not ended. The joined worker
  /// begins at the lowest step of the drawn workers that run. If no drawn worker runs, the gate
  /// draws more workers. If no worker of the job runs, and some have ended, the joined worker
  /// begins at barrier::finished, which means that it ends. If no worker has begun yet, the worker
  /// with the lowest id begins first (begins_first()). A worker that ends because its node leaves
  /// counts as ended too.
  [[nodiscard]] bool enter(const Context& context);
  /// The step at which the worker begins. Requires: enter() or a later event has returned true.
  [[nodiscard]] Step entry_step() const noexcept { return entry_step_; }
  /// True if entry_step() is 0 because no worker of the job had begun.
  [[nodiscard]] bool begins_first() const noexcept { return begins_first_; }

  [[nodiscard]] bool on(const Context& context, const StepAnswer& answer);
  [[nodiscard]] bool on(const Context& context, const Notice& notice);
  [[nodiscard]] bool on_timer(const Context& context);

  /// From now on the gate draws from `workers`. `changed` lists, in ascending order, the former
  /// workers that have departed or have a new incarnation. If the current draw depends on one of
  /// them, the gate draws again. A worker that is alone now passes.
  [[nodiscard]] bool on_members(const Context& context, WorkerIds workers,
                                const std::vector<MemberId>& changed);

  /// The worker has ended: the gate becomes idle, and ignores later answers.
  void stop_asking() { phase_ = Phase::idle; }

  /// Returns the worker's own pace in the form in which StepAnswer carries it; nullopt if the
  /// barrier does not need paces, or if the worker has not pushed.
  [[nodiscard]] std::optional<PaceReport> pace_report(Time now) const;
  /// Returns the step before which begin() lets the worker pass without asking: the last result of
  /// barrier::run_to(). Returns 0 if no draw was decided by paces yet.
  [[nodiscard]] Step run_end() const noexcept { return run_end_; }

  /// The steps that the latest draw has seen. If the draw has let the worker pass, these are the
  /// steps of all drawn workers, with 0 for those that have not answered.
  [[nodiscard]] std::span<const Step> seen_steps() const noexcept { return seen_steps_; }

  /// The paces by which the rule decides the latest draw: own_pace() is the worker's own, and
  /// seen_paces() are those of the drawn workers. The first seen_from().size() of seen_paces() come
  /// from the workers in seen_from(), in the same order; the other drawn workers have not answered.
  [[nodiscard]] const barrier::Pace& own_pace() const noexcept { return own_pace_; }
  [[nodiscard]] std::span<const barrier::Pace> seen_paces() const noexcept { return seen_paces_; }
  [[nodiscard]] std::span<const MemberId> seen_from() const noexcept { return seen_from_; }

  /// Counts the draws, and the draws that let the worker pass.
  struct Counts {
    std::uint64_t draws = 0;
    std::uint64_t passes = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  [[nodiscard]] const std::optional<barrier::Tuner>& tuner() const noexcept { return tuner_; }
  /// Returns the first laggard that the current draw has found; nullopt if the worker is not
  /// refused, or if no laggard is known, for example because a drawn worker has not answered.
  /// Meaningless while the gate is idle.
  [[nodiscard]] std::optional<MemberId> laggard() const noexcept { return laggard_; }
  /// Returns the weights of the gate's draws; nullptr if draws are uniform.
  [[nodiscard]] const DrawWeights* weights() const noexcept {
    return weights_ ? &*weights_ : nullptr;
  }

 private:
  enum class Phase { idle, asking, refused, entering };

  /// Returns the barrier at which the worker decides now.
  [[nodiscard]] const barrier::Barrier& current_barrier() const noexcept {
    return tuner_ ? tuner_->barrier() : barrier_;
  }
  bool start_draw(const Context& context);
  /// The worker passes. Returns true.
  bool pass(const Context& context);
  /// Removes the sender of `answer` from unanswered_, and gives its step to the tuner. Returns
  /// false if the draw does not await an answer of this sender.
  bool take_answer(const StepAnswer& answer);
  bool decide(const Context& context);
  /// Sets run_end_ by own_pace_ and seen_paces_. Returns true if the worker passes.
  bool decide_by_paces();
  /// Returns true if the answer of one laggard suffices to refuse the worker: always, unless the
  /// rule decides by paces and no draw since the worker's last push has refused it.
  [[nodiscard]] bool can_laggard_decide() const noexcept {
    return !decides_by_paces_ || own_pace_.waits;
  }
  /// Returns the first worker in seen_from_ whose step is below the rule's floor
  /// (barrier::floor()); nullopt if no step is.
  [[nodiscard]] std::optional<MemberId> first_laggard() const;
  bool decide_entry(const Context& context);
  /// Draws `count` random others, with the barrier's weights, and asks them for their steps.
  void ask_random(const Context& context, std::uint32_t count);
  /// Returns the number of workers that can be drawn.
  [[nodiscard]] std::uint32_t candidate_count() const;
  void set_workers(WorkerIds workers);
  /// Returns true if only a Notice from the laggard makes the worker draw again.
  [[nodiscard]] bool waits_only_for_notice() const;
  void ask_for_notice(const Context& context) const;
  void wait_to_draw_again(const Context& context, std::optional<MemberId> laggard);
  void wait_until(const Context& context, Time deadline);

  barrier::Barrier barrier_;
  /// Present if the barrier tunes itself.
  std::optional<barrier::Tuner> tuner_;
  barrier::Recheck recheck_;
  MemberId self_;
  WorkerIds workers_;
  /// This worker's position in workers_. Draws leave it out.
  std::uint32_t own_position_ = 0;

  Phase phase_ = Phase::idle;
  Step own_step_ = 0;
  Time automatic_interval_{};
  std::uint64_t draw_number_ = 0;
  /// While entering: how many workers to draw.
  std::size_t entry_sample_size_ = 1;
  /// While entering: true if the last draw asked all other workers, all have answered, at least one
  /// has ended, and the others have not begun.
  bool has_seen_all_ended_ = false;
  Step entry_step_ = 0;
  bool begins_first_ = false;
  /// The workers whose answers the current draw still awaits.
  std::vector<MemberId> unanswered_;
  std::vector<Step> seen_steps_;
  /// True if the rule decides by paces. Only then are own_pace_, seen_paces_ and run_end_ used, and
  /// seen_from_, unless the worker enters.
  bool decides_by_paces_;
  /// The worker's own pace. Its `waits` is set when the worker is refused.
  barrier::Pace own_pace_;
  /// The paces that the current draw has seen, and, in the same order, the workers that sent them.
  /// After query_timeout, seen_paces_ also has an empty pace for each worker that has not answered.
  std::vector<barrier::Pace> seen_paces_;
  std::vector<MemberId> seen_from_;
  Step run_end_ = 0;
  /// While refused: the first laggard that the draw has found, if it has found one.
  std::optional<MemberId> laggard_;
  /// The time at which the gate acts if no answer or Notice has made it act before. Unused while
  /// the gate is idle.
  Time deadline_{};
  Timer timer_;
  Counts counts_;
  /// Absent if draws are uniform.
  std::optional<DrawWeights> weights_;
  /// Scratch memory of ask_random().
  std::vector<std::uint32_t> drawn_positions_;
};

}  // namespace starling::core
