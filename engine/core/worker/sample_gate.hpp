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

/// The ids of all workers of the job, from which samples are drawn. The workers of one node share
/// the list until one of them leaves.
using WorkerIds = std::shared_ptr<const std::vector<MemberId>>;

/// The step that a worker which has joined reports until it knows its first step. It is higher than
/// all others, so no other worker waits for it.
inline constexpr Step not_begun = barrier::finished + 1;

/// Draws beta other workers and asks them for their steps. Decides once one of them turns out to be
/// a laggard (too far behind for the rule), all have answered, or query_timeout is over. If the
/// barrier is weighted, the gate learns the weights of its draws from the answers (DrawWeights).
///
///     idle --begin--> asking --all answered, no laggard--> idle: the worker passes
///                       ^  \--a laggard, or no answer--> refused
///                       \--laggard has caught up, or interval is over--/
///
/// If the barrier decides by paces (barrier::needs_paces()), the answers bring them, and the first
/// draw after a push needs all answers: a laggard alone does not decide it. A worker that does not
/// answer has step 0 and no times. The rule may let the worker run: begin() then asks nobody before
/// run_end().
///
/// A worker that joins asks in the same way at which step to begin:
///
///     idle --enter--> entering --all have answered, or timeout--> idle: the worker begins
///
/// Each event returns true if the worker may now pass the barrier, or begin at entry_step(). If the
/// barrier tunes itself, the gate has the worker's tuner: it learns from the answers and from the
/// times at which the worker arrives and passes. One call at a time; not thread-safe.
class SampleGate {
 public:
  SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self, WorkerIds workers);

  /// The worker has pushed the update of a step that took `step_time`. Call it after each step,
  /// before begin().
  void on_push(const Context& context, Time step_time);

  /// The worker has finished step `own_step`, and wants to pass the barrier. The gate draws again
  /// `automatic_interval` after a refusal if the job's recheck interval is `auto`, or if there is
  /// no interval and no laggard that is to send a Notice. `descent` is that of the step.
  [[nodiscard]] bool begin(const Context& context, Step own_step, Time automatic_interval,
                           std::optional<barrier::Descent> descent = std::nullopt);

  /// The worker has joined. It begins at the lowest step of those drawn workers that have begun and
  /// not ended. If there is none, it draws more. If there is none among all workers, it begins at
  /// `finished` if some have ended; else the one with the lowest id begins at 0. A worker that ends
  /// because its node leaves counts as ended, too.
  [[nodiscard]] bool enter(const Context& context);
  /// The step at which the worker begins. Requires: it has entered.
  [[nodiscard]] Step entry_step() const noexcept { return entry_step_; }

  [[nodiscard]] bool on(const Context& context, const StepAnswer& answer);
  [[nodiscard]] bool on(const Context& context, const Notice& notice);
  [[nodiscard]] bool on_timer(const Context& context);

  /// From now on the gate draws from `workers`. `changed` lists, in ascending order, the former
  /// workers that are not in `workers` any more, or only in a new incarnation.
  [[nodiscard]] bool on_members(const Context& context, WorkerIds workers,
                                const std::vector<MemberId>& changed);

  /// The worker has ended: the gate becomes idle, and ignores later answers.
  void stop_asking() { phase_ = Phase::idle; }

  /// Returns the worker's own pace as others may learn it; nullopt if the barrier does not need it,
  /// or the worker has not pushed.
  [[nodiscard]] std::optional<PaceReport> pace_report(Time now) const;
  /// Returns the step before which the worker does not ask again, because it was allowed to run; 0
  /// if it has not run.
  [[nodiscard]] Step run_end() const noexcept { return run_end_; }

  /// The paces by which the rule has decided the last draw: the worker's own, and those of the
  /// drawn workers, of which the first seen_from().size() have answered, in this order.
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
  /// Returns the laggard that decided the current draw; nullopt if the draw is not decided, or if
  /// no single worker has decided it. Meaningless while the gate is idle.
  [[nodiscard]] std::optional<MemberId> laggard() const noexcept { return laggard_; }
  /// Returns the weights of the gate's draws; nullptr if draws are uniform.
  [[nodiscard]] const DrawWeights* weights() const noexcept {
    return weights_ ? &*weights_ : nullptr;
  }

 private:
  enum class Phase { idle, asking, refused, entering };

  /// Returns the barrier at which the worker decides now.
  [[nodiscard]] const barrier::Barrier& present_barrier() const noexcept {
    return tuner_ ? tuner_->barrier() : barrier_;
  }
  bool start_draw(const Context& context);
  /// The worker passes. Returns true.
  bool pass(const Context& context);
  /// Removes the worker from those whose answers the draw awaits, and lets the tuner see its step.
  /// Returns false if the draw does not await it.
  bool take_answer(const StepAnswer& answer);
  bool decide(const Context& context);
  /// Decides by seen_paces_. Returns true if the worker passes, perhaps to run.
  bool decide_by_paces();
  /// Returns true if one laggard decides the current draw: always, unless the rule decides by paces
  /// and the worker does not wait yet.
  [[nodiscard]] bool is_decided_by_laggard() const noexcept {
    return !decides_by_paces_ || own_pace_.waits;
  }
  /// Returns the first of the workers whose pace was seen that is behind the rule's floor.
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
  /// This worker's position in workers_, which is not drawn.
  std::uint32_t own_position_ = 0;

  Phase phase_ = Phase::idle;
  Step own_step_ = 0;
  Time automatic_interval_{};
  std::uint64_t draw_number_ = 0;
  /// While entering: how many workers to draw.
  std::size_t entry_sample_size_ = 1;
  /// True if all others have answered the last draw, and some have ended, but none runs.
  bool has_seen_all_ended_ = false;
  Step entry_step_ = 0;
  /// The workers whose answers the current draw still awaits.
  std::vector<MemberId> unanswered_;
  std::vector<Step> seen_steps_;
  /// True if the rule decides by paces; the members below are used only then.
  bool decides_by_paces_;
  /// The worker's own pace; `waits` is set when a draw is refused.
  barrier::Pace own_pace_;
  /// The paces that the current draw has seen, and the workers that have answered with them.
  std::vector<barrier::Pace> seen_paces_;
  std::vector<MemberId> seen_from_;
  Step run_end_ = 0;
  /// While refused: the laggard that decided the draw, if there was one.
  std::optional<MemberId> laggard_;
  /// When the gate acts even if no answer or Notice has come. Without meaning while it is idle.
  Time deadline_{};
  Timer timer_;
  Counts counts_;
  /// Absent if draws are uniform.
  std::optional<DrawWeights> weights_;
  /// Scratch memory of ask_random().
  std::vector<std::uint32_t> drawn_positions_;
};

}  // namespace starling::core
