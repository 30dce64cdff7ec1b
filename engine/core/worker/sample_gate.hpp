/// A worker's barrier in jobs in which no member sees every worker's step: the worker asks a few
/// random other workers for their steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
///
///     idle --begin--> asking --all answered, no laggard--> idle: the worker passes
///                       ^  \--a laggard, or no answer--> refused
///                       \--laggard has caught up, or interval is over--/
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

  /// The worker has finished step `own_step`, and wants to pass the barrier. If the job's recheck
  /// interval is `auto`, the gate uses `automatic_interval`.
  [[nodiscard]] bool begin(const Context& context, Step own_step, Time automatic_interval);

  /// The worker has joined. It begins at the lowest step of its first sample. If no drawn worker
  /// has begun, it draws more; if no worker at all has begun, the one with the lowest id begins at
  /// 0.
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

  /// Counts the draws, and the draws that let the worker pass.
  struct Counts {
    std::uint64_t draws = 0;
    std::uint64_t passes = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  [[nodiscard]] const std::optional<barrier::Tuner>& tuner() const noexcept { return tuner_; }
  /// Returns the laggard that decided the present draw; nullopt if the draw is not decided, or if
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
  Step entry_step_ = 0;
  /// The workers whose answers the current draw still awaits.
  std::vector<MemberId> unanswered_;
  std::vector<Step> seen_steps_;
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
