/// Central step keeping: sees every step and says who may go on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/engine/core/alarm.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/step_times.hpp"

namespace starling::core {

struct CoordinatorOptions {
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::central();
  /// Where each worker starts: its step, 0 in a fresh job. Whoever joins later is not among them.
  std::vector<Step> first;
};

/// One at a time; not thread-safe. Ends the program where a barrier over everyone was violated.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  void on(const Context& context, const Arrived& arrived);
  void on(const Context& context, const Ended& ended);
  /// From now on whoever waits or arrives is told to stop.
  void on(const Context& context, const Stop& stop);
  void on_timer(const Context& context);
  /// `worker` has died: nobody waits for it any more.
  void on_left(const Context& context, WorkerId worker);
  /// `worker` has joined, after its former life has left if it had one. It begins at the lowest
  /// live step, or at 0 where it is there from the `beginning`, and counts from now on. Where
  /// rounds are gathered it begins one before the highest step that anyone was let make, and makes
  /// that one by letting all owners know it.
  void on_joined(WorkerId worker, bool beginning = false);

  /// Both at once, for many: those that `left`, whom nobody waits for any more, and those that then
  /// `joined`.
  void on_members(const Context& context, const std::vector<WorkerId>& left,
                  const std::vector<WorkerId>& joined);

  /// Smallest and largest step of the workers that still run; {0, 0} when none does.
  struct Spread {
    Step min = 0;
    Step max = 0;
  };
  [[nodiscard]] Spread spread() const;
  /// The largest spread there ever was.
  [[nodiscard]] Step spread_max() const noexcept { return spread_max_; }
  /// Draws of others, and those that let a worker pass.
  [[nodiscard]] std::uint64_t draws() const noexcept { return draws_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// Sampled barriers: whom the last draw for `worker` fell on. Requires: it is or was a member.
  [[nodiscard]] const std::vector<WorkerId>& drawn(WorkerId worker) const {
    return members_.at(worker).drawn;
  }

 private:
  struct Member {
    Step step = 0;
    bool alive = true;
    /// It has not yet been told where to begin.
    bool entering = false;
    bool waiting = false;
    /// Was told to stop rather than let go.
    bool stopped = false;
    /// When it was last let go.
    Time began{};
    /// Sampled barriers: whom the last draw fell on, whom it failed on, and when to draw again.
    std::vector<WorkerId> drawn;
    std::optional<WorkerId> laggard;
    Time retry = Time::max();
    StepTimes step_times;
  };

  bool dismiss(WorkerId worker);
  void set_step(WorkerId id, Step step);
  [[nodiscard]] Step lowest() const;
  void remove(WorkerId id);
  void review(const Context& context, WorkerId moved);
  [[nodiscard]] bool looks_again(const Member& member, WorkerId moved) const;
  bool consider(const Context& context, WorkerId id);
  bool admitted(const Context& context, WorkerId id);
  bool admitted_by_sample(const Context& context, WorkerId id);
  void retry_at(WorkerId id, Time at);
  void answer(const Context& context, WorkerId id);
  void tell(const Context& context, WorkerId id) const;

  CoordinatorOptions options_;
  std::vector<Member> members_;
  std::vector<WorkerId> alive_;
  /// Position in alive_ of each live worker.
  std::vector<std::uint32_t> position_;
  /// Who waits, in the order of arrival.
  std::vector<WorkerId> waiting_;
  /// Who of them draws again by the clock, and when; as Member::retry.
  std::set<std::pair<Time, WorkerId>> retries_;
  /// How many running workers stand at each step.
  std::map<Step, std::size_t> standing_;
  /// The slowest of them when who waits was last looked at.
  Step reviewed_ = 0;
  /// The highest step that anyone was let make.
  Step frontier_ = 1;
  /// Someone has come to the end.
  bool ended_ = false;
  bool stopping_ = false;
  Step spread_max_ = 0;
  /// A job that goes on from a saved state may start further apart than its barrier allows.
  Step first_spread_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t passes_ = 0;
  Alarm alarm_;
  std::vector<std::uint32_t> picks_;
  std::vector<Step> seen_;
};

}  // namespace starling::core
