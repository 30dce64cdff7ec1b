/// A worker's barrier where no member sees every step: the worker asks a few random others.
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

/// The workers that can be drawn: shared by all workers of a node until one of them leaves.
using Members = std::shared_ptr<const std::vector<MemberId>>;

/// The step that a worker reports from joining until it has found its first step: it delays no
/// other.
inline constexpr Step not_begun = barrier::finished + 1;

/// A worker that does not answer a step query within this time counts as behind.
inline constexpr Time query_timeout = std::chrono::seconds{1};

/// Draws beta others, asks them, and decides at the first laggard or when all have answered:
///
///     idle --begin--> asking --all on pace--> (passed) idle
///                       ^  \--laggard, silence--> refused
///                       \------caught up, interval----/
///
/// A worker that joins asks in the same way at which step to begin:
///
///     idle --enter--> entering --all have answered, or time is up--> (lowest() found) idle
///
/// Events return true when the worker may pass, or begin. One call at a time; not thread-safe.
class SampleGate {
 public:
  SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self, Members members);

  /// The worker has finished step `own`. `automatic` is what the interval `auto` stands for.
  [[nodiscard]] bool begin(const Context& context, Step own, Time automatic);

  /// The worker has joined. It begins at the lowest step of its first sample. Where no drawn worker
  /// has begun, it draws more; where no worker at all has, the one with the lowest id begins at 0.
  [[nodiscard]] bool enter(const Context& context);
  [[nodiscard]] Step lowest() const noexcept { return lowest_; }

  [[nodiscard]] bool on(const Context& context, const StepAnswer& answer);
  [[nodiscard]] bool on(const Context& context, const Notice& notice);
  [[nodiscard]] bool on_timer(const Context& context);

  /// `worker` has left or died: it is not drawn again, and the gate does not wait for it.
  [[nodiscard]] bool on_left(const Context& context, MemberId worker);

  /// From now on others are drawn from `members`; `changed` names, ascending, the old workers that
  /// `members` lacks or has in a new incarnation only.
  [[nodiscard]] bool on_members(const Context& context, Members members,
                                const std::vector<MemberId>& changed);

  /// Gives up waiting; later answers are ignored.
  void abandon() { phase_ = Phase::idle; }

  /// The worker's actor was lost, and with it all timers and answers: asks afresh if it waits.
  [[nodiscard]] bool resume(const Context& context);

  /// Counts the draws, and the draws that let the worker pass.
  struct Counts {
    std::uint64_t draws = 0;
    std::uint64_t passes = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  enum class Phase { idle, asking, refused, entering };

  bool draw(const Context& context);
  bool judge(const Context& context);
  bool judge_entry(const Context& context);
  /// Draws `count` others and asks them.
  void ask(const Context& context, std::uint32_t count);
  [[nodiscard]] std::uint32_t others() const;
  void exclude(MemberId worker);
  /// True where only a Notice from the laggard makes the worker draw again.
  [[nodiscard]] bool waits_for_notice() const;
  void ask_for_notice(const Context& context) const;
  void refuse(const Context& context, std::optional<MemberId> laggard);
  void wait_until(const Context& context, Time deadline);

  barrier::Barrier barrier_;
  barrier::Recheck recheck_;
  MemberId self_;
  Members members_;
  /// Positions in members_ that are not drawn: the worker's own, and those of workers that have
  /// left. Ascending.
  std::vector<std::uint32_t> excluded_;

  Phase phase_ = Phase::idle;
  Step own_ = 0;
  Time automatic_{};
  std::uint64_t draw_ = 0;
  /// While entering: how many workers to draw, and the lowest step found.
  std::size_t breadth_ = 1;
  Step lowest_ = 0;
  /// The workers whose answers the current draw still awaits.
  std::vector<MemberId> silent_;
  std::vector<Step> seen_;
  std::optional<MemberId> laggard_;
  Time deadline_{};
  Timer timer_;
  Counts counts_;
  std::vector<std::uint32_t> picks_;
};

}  // namespace starling::core
