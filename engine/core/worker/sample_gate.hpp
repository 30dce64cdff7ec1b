/// A worker's barrier in jobs in which no member sees every step: the worker asks a few random
/// others for their steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

/// The ids of all workers of the job, from which samples are drawn. The workers of one node share
/// the list until one of them leaves.
using WorkerIds = std::shared_ptr<const std::vector<MemberId>>;

/// The step that a worker reports after it has joined, until it has found its first step. No other
/// worker waits for it meanwhile.
inline constexpr Step not_begun = barrier::finished + 1;

/// A worker that does not answer a step query within this time counts as behind.
inline constexpr Time query_timeout = std::chrono::seconds{1};

/// Draws beta others, asks them for their steps, and decides when a first laggard or all of them
/// have answered, or after query_timeout:
///
///     idle --begin--> asking --no laggard--> (passed) idle
///                       ^  \--a laggard, or no answer--> refused
///                       \--laggard has caught up, or interval is over--/
///
/// A worker that joins asks in the same way at which step to begin:
///
///     idle --enter--> entering --all have answered, or timeout--> (entry_step() found) idle
///
/// Each event returns true if the worker may now pass the barrier, or begin. One call at a time;
/// not thread-safe.
class SampleGate {
 public:
  SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self, WorkerIds members);

  /// The worker has finished step `own`. The recheck interval `auto` means `automatic_interval`.
  [[nodiscard]] bool begin(const Context& context, Step own, Time automatic_interval);

  /// The worker has joined. It begins at the lowest step of its first sample. If no drawn worker
  /// has begun, it draws more; if no worker at all has begun, the one with the lowest id begins at
  /// 0.
  [[nodiscard]] bool enter(const Context& context);
  /// The step at which the worker begins. Requires: it has entered.
  [[nodiscard]] Step entry_step() const noexcept { return entry_step_; }

  [[nodiscard]] bool on(const Context& context, const StepAnswer& answer);
  [[nodiscard]] bool on(const Context& context, const Notice& notice);
  [[nodiscard]] bool on_timer(const Context& context);

  /// `worker` has left or died: it is not drawn again, and the gate does not wait for it.
  [[nodiscard]] bool on_left(const Context& context, MemberId worker);

  /// From now on others are drawn from `members`. `changed` lists, in ascending order, the former
  /// workers that are not in `members` any more, or only in a new incarnation.
  [[nodiscard]] bool on_members(const Context& context, WorkerIds members,
                                const std::vector<MemberId>& changed);

  /// Ignores later answers.
  void stop_asking() { phase_ = Phase::idle; }

  /// The worker's actor was lost, and all timers and answers with it. Draws and asks afresh if the
  /// gate is not idle.
  [[nodiscard]] bool resume(const Context& context);

  /// Counts the draws, and the draws that let the worker pass.
  struct Counts {
    std::uint64_t draws = 0;
    std::uint64_t passes = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  enum class Phase { idle, asking, refused, entering };

  bool start_draw(const Context& context);
  bool decide(const Context& context);
  bool decide_entry(const Context& context);
  /// Draws `count` random others and asks them for their steps.
  void ask_random(const Context& context, std::uint32_t count);
  /// Returns the number of workers that can be drawn.
  [[nodiscard]] std::uint32_t candidates() const;
  void exclude(MemberId worker);
  /// Returns true if only a Notice from the laggard makes the worker draw again.
  [[nodiscard]] bool waits_for_notice() const;
  void ask_for_notice(const Context& context) const;
  void wait_to_draw_again(const Context& context, std::optional<MemberId> laggard);
  void wait_until(const Context& context, Time deadline);

  barrier::Barrier barrier_;
  barrier::Recheck recheck_;
  MemberId self_;
  WorkerIds members_;
  /// Positions in members_ that are not drawn: the worker's own, and those of workers that have
  /// left. Ascending.
  std::vector<std::uint32_t> excluded_;

  Phase phase_ = Phase::idle;
  Step own_ = 0;
  Time automatic_interval_{};
  std::uint64_t draw_number_ = 0;
  /// While entering: how many workers to draw.
  std::size_t entry_sample_size_ = 1;
  Step entry_step_ = 0;
  /// The workers whose answers the current draw still awaits.
  std::vector<MemberId> unanswered_;
  std::vector<Step> seen_steps_;
  std::optional<MemberId> laggard_;
  /// When the phase, unless it is idle, ends without an answer or a Notice.
  Time deadline_{};
  Timer timer_;
  Counts counts_;
  /// Scratch memory of ask_random().
  std::vector<std::uint32_t> drawn_positions_;
};

}  // namespace starling::core
