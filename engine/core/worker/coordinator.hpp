/// The coordinator: sees every worker's step and decides which workers may go on.
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
  /// The step that each worker starts from, by id; 0 in a fresh job. Workers that join later are
  /// not listed.
  std::vector<Step> first;
};

/// One call at a time; not thread-safe. Ends the program where a barrier over everyone was
/// violated.
///
///     [taking over] --all have reported their status, or are gone--> knows all
///
/// A coordinator that takes over lets no worker go on before all have reported. A reported step is
/// never ahead of the worker's true step, and a worker that has reported obeys no former
/// coordinator any more: so no worker passes against the rule.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  void on(const Context& context, const Arrived& arrived);
  void on(const Context& context, const Ended& ended);
  /// Sends Stop to all workers that wait, and from now on to each that arrives.
  void on(const Context& context, const Stop& stop);
  /// Counts once from each member that is awaited, and where a worker that has joined asks at which
  /// step to begin.
  void on(const Context& context, const WorkerStatus& status);
  void on_timer(const Context& context);
  /// `worker` has died: no worker waits for it any more.
  void on_left(const Context& context, MemberId worker);
  /// `worker` takes part from the beginning of the job, and goes on from `step`.
  void on_founded(MemberId worker, Step step);
  /// `worker` has joined, after its former incarnation, if any, has left. It begins at the lowest
  /// live step, and counts from now on. In bulk-synchronous jobs it begins one before the highest
  /// step that any worker was let make, and makes that step by pushing its entry to all owners.
  void on_joined(MemberId worker);

  /// Takes over from a coordinator that is gone. Awaits a WorkerStatus from each of `workers` and
  /// each of `owners`: owners know how far workers came that are gone. Requires: it has no workers
  /// yet.
  void take_over(const std::vector<MemberId>& workers, const std::vector<MemberId>& owners);

  /// Handles many changes at once: members that have `left`, workers or owners, are awaited no
  /// more; then workers have `joined`.
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
  /// The largest spread so far; since the takeover where it took over.
  [[nodiscard]] Step spread_max() const noexcept { return spread_max_; }
  /// Counts the draws of sampled barriers, and the draws that let a worker pass.
  [[nodiscard]] std::uint64_t draws() const noexcept { return draws_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// Sampled barriers: the workers in the last draw for `worker`. Requires: it is or was a member.
  [[nodiscard]] const std::vector<MemberId>& drawn(MemberId worker) const {
    return members_.at(worker).drawn;
  }

 private:
  struct Member {
    /// Infinitely far where the worker does not run or has not reported its step yet.
    Step step = barrier::finished;
    bool alive = true;
    /// It does not know yet at which step to begin.
    bool entering = false;
    bool waiting = false;
    /// It was sent Stop rather than Proceed.
    bool stopped = false;
    /// When it was last sent Stop or Proceed, or reported its status.
    Time began{};
    /// Sampled barriers: the workers in its last draw, the first laggard among them, and when to
    /// draw again.
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
  /// The workers that wait, in the order of arrival.
  std::vector<MemberId> waiting_;
  /// The workers that draw again at a set time, by that time, as in Member::retry.
  std::set<std::pair<Time, MemberId>> retries_;
  /// Counts the running workers at each step.
  std::map<Step, std::size_t> workers_at_;
  /// The lowest step of the running workers when the waiting ones were last reviewed.
  Step reviewed_ = 0;
  /// The highest step that any worker was let make.
  Step frontier_ = 1;
  /// True once a worker has ended.
  bool ended_ = false;
  bool stopping_ = false;
  bool knows_all_ = true;
  /// The members whose WorkerStatus it awaits before it knows all.
  std::set<MemberId> unheard_;
  /// The highest step of which an owner holds an update, as far as owners have reported.
  Step held_ = 0;
  Step spread_max_ = 0;
  /// The spread at the start: the workers of a job that goes on from a saved state may start
  /// further apart than its barrier allows.
  Step first_spread_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t passes_ = 0;
  Timer timer_;
  std::vector<std::uint32_t> picks_;
  std::vector<Step> seen_;
};

}  // namespace starling::core
