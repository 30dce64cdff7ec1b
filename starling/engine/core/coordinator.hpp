/// Central step keeping: sees every step and says who may go on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

struct CoordinatorOptions {
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::central();
  /// Where each worker starts: its step, 0 in a fresh job. Whoever joins later is not among them.
  std::vector<Step> first;
};

/// One at a time; not thread-safe. Ends the program where a barrier over everyone was violated.
///
///     [taking over] --all have told where they stand, or are gone--> knows all
///
/// Whoever takes over lets nobody go before it knows all. Steps that are told are never ahead of
/// the truth, and nobody who has told its own goes on by the word of a former coordinator: so
/// nobody passes whom the rule forbids to.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  void on(const Context& context, const Arrived& arrived);
  void on(const Context& context, const Ended& ended);
  /// From now on whoever waits or arrives is told to stop.
  void on(const Context& context, const Stop& stop);
  /// Counts once of each that is awaited, and where a worker that has joined asks where to begin.
  void on(const Context& context, const WorkerStatus& status);
  void on_timer(const Context& context);
  /// `worker` has died: nobody waits for it any more.
  void on_left(const Context& context, MemberId worker);
  /// `worker` is there from the beginning of the job, and goes on from `step`.
  void on_founded(MemberId worker, Step step);
  /// `worker` has joined, after its former incarnation has left if it had one. It begins at the
  /// lowest live step, and counts from now on. Where rounds are gathered it begins one before the
  /// highest step that anyone was let make, and makes that one by letting all owners know it.
  void on_joined(MemberId worker);

  /// Keeps the steps from now on in place of one that is gone. Awaits a WorkerStatus of each of the
  /// `workers`, and of those who own ranges: they know how far those came who are gone. Requires:
  /// nobody has joined.
  void take_over(const std::vector<MemberId>& workers, const std::vector<MemberId>& owners);

  /// Many at once: those that `left`, workers or owners, for whom nobody waits any more, and
  /// workers that then `joined`.
  void on_members(const Context& context, const std::vector<MemberId>& left,
                  const std::vector<MemberId>& joined);

  /// Smallest and largest step of the workers that still run; {0, 0} when none does.
  struct Spread {
    Step min = 0;
    Step max = 0;
  };
  [[nodiscard]] Spread spread() const;
  /// False while it takes over.
  [[nodiscard]] bool knows_all() const noexcept { return knows_all_; }
  /// The largest spread there ever was, since it took over where it did.
  [[nodiscard]] Step spread_max() const noexcept { return spread_max_; }
  /// Draws of others, and those that let a worker pass.
  [[nodiscard]] std::uint64_t draws() const noexcept { return draws_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// Sampled barriers: whom the last draw for `worker` fell on. Requires: it is or was a member.
  [[nodiscard]] const std::vector<MemberId>& drawn(MemberId worker) const {
    return members_.at(worker).drawn;
  }

 private:
  struct Member {
    /// Of those who do not run, and have not told theirs yet: infinitely far.
    Step step = barrier::finished;
    bool alive = true;
    /// It has not yet been told where to begin.
    bool entering = false;
    bool waiting = false;
    /// Was told to stop rather than let go.
    bool stopped = false;
    /// When it was last let go.
    Time began{};
    /// Sampled barriers: whom the last draw fell on, whom it failed on, and when to draw again.
    std::vector<MemberId> drawn;
    std::optional<MemberId> laggard;
    Time retry = Time::max();
    StepTimes step_times;
  };

  bool dismiss(MemberId worker);
  void add(MemberId worker);
  void place(MemberId worker, Step step);
  void book(const Context& context, const WorkerStatus& status);
  void know_all(const Context& context);
  void set_step(MemberId id, Step step);
  [[nodiscard]] Step lowest() const;
  void remove(MemberId id);
  void review(const Context& context, MemberId moved);
  [[nodiscard]] bool looks_again(const Member& member, MemberId moved) const;
  bool consider(const Context& context, MemberId id);
  bool admitted(const Context& context, MemberId id);
  bool admitted_by_sample(const Context& context, MemberId id);
  void retry_at(MemberId id, Time at);
  void answer(const Context& context, MemberId id);
  void send_decision(const Context& context, MemberId id) const;

  CoordinatorOptions options_;
  std::vector<Member> members_;
  std::vector<MemberId> alive_;
  /// Position in alive_ of each live worker.
  std::vector<std::uint32_t> position_;
  /// Who waits, in the order of arrival.
  std::vector<MemberId> waiting_;
  /// Who of them draws again by the clock, and when; as Member::retry.
  std::set<std::pair<Time, MemberId>> retries_;
  /// How many running workers stand at each step.
  std::map<Step, std::size_t> workers_at_;
  /// The slowest of them when who waits was last looked at.
  Step reviewed_ = 0;
  /// The highest step that anyone was let make.
  Step frontier_ = 1;
  /// Someone has come to the end.
  bool ended_ = false;
  bool stopping_ = false;
  bool knows_all_ = true;
  /// Whose word it awaits before it knows all.
  std::set<MemberId> unheard_;
  /// The highest step of which an owner holds an update, as far as they were asked.
  Step held_ = 0;
  Step spread_max_ = 0;
  /// A job that goes on from a saved state may start further apart than its barrier allows.
  Step first_spread_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t passes_ = 0;
  Timer timer_;
  std::vector<std::uint32_t> picks_;
  std::vector<Step> seen_;
};

}  // namespace starling::core
