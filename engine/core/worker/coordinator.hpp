/// The coordinator: sees every worker's step and decides which workers may go on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/barrier/tuner.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

struct CoordinatorOptions {
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::central();
};

/// One call at a time; not thread-safe. Ends the program if workers ever are further apart than a
/// barrier over all workers allows.
///
///     taking over --each member has reported its status, or is gone--> knows all steps
///
/// A coordinator that takes over lets no worker go on before all members have reported. So every
/// decision obeys the barrier's rule, because a reported step is never higher than the worker's
/// true step, and a worker that has reported obeys no former coordinator any more.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  void on(const Context& context, const Arrived& arrived);
  void on(const Context& context, const Ended& ended);
  /// If this is the first worker that has computed its batch of the step, tells the others to hand
  /// in. Ignores a step that is not the worker's next one. A new coordinator that does not know the
  /// worker's step yet tells nobody; the round then ends as under BSP.
  void on(const Context& context, const BatchDone& done);
  /// Sends Stop to all workers that wait, and from now on to each worker that arrives.
  void on(const Context& context, const Stop& stop);
  /// Handles the first status of each member whose status a takeover awaits, and the status by
  /// which a worker that has joined asks at which step to begin. Ignores all others.
  void on(const Context& context, const WorkerStatus& status);
  void on_timer(const Context& context);
  /// `worker` takes part from the beginning of the job, and starts from `step`.
  void add_initial_worker(MemberId worker, Step step);
  /// `worker` has joined. It begins at the lowest step of the running workers, and from now on
  /// others wait for it. In bulk-synchronous jobs it begins one step before the highest step that
  /// any worker was allowed to make, and makes that step by pushing its entry to all owners. If no
  /// worker runs and one has ended, it begins at `finished`, so it ends at once. During a takeover,
  /// its step is known only when the takeover is complete. Requires: if the worker had a former
  /// incarnation, that one has left.
  void on_joined(MemberId worker);

  /// Takes over from a coordinator that is gone. Awaits a WorkerStatus from each of `workers` and
  /// of `owners`; owners know the steps of workers that are gone. Requires: this coordinator has no
  /// workers yet.
  void take_over(const std::vector<MemberId>& workers, const std::vector<MemberId>& owners);

  /// Handles many changes at once: first that the members `left` (workers or owners) are gone, then
  /// that the workers `joined` have joined.
  void on_members(const Context& context, const std::vector<MemberId>& left,
                  const std::vector<MemberId>& joined);

  /// The smallest and the largest step of the workers that still run; {0, 0} when none does.
  struct Spread {
    Step min = 0;
    Step max = 0;
  };
  [[nodiscard]] Spread spread() const;
  /// Returns false while the takeover still awaits statuses.
  [[nodiscard]] bool knows_all_steps() const noexcept { return knows_all_steps_; }
  /// The largest difference of two workers' steps so far, or since the takeover if there was one.
  [[nodiscard]] Step max_lag() const noexcept { return max_lag_; }
  /// Counts the draws of sampled barriers, and the draws that let a worker pass.
  [[nodiscard]] std::uint64_t draws() const noexcept { return draws_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// Returns the sums of the current s and beta of the live workers' barriers; zeros unless the
  /// barrier tunes itself.
  [[nodiscard]] barrier::TunedSum tuned() const;
  /// Sampled barriers: the workers in the last draw for `worker`. Requires: `worker` was added.
  [[nodiscard]] const std::vector<MemberId>& drawn(MemberId worker) const {
    return workers_.at(worker).drawn;
  }

 private:
  struct WorkerState {
    /// `finished` when the worker does not run or has not reported its step yet.
    Step step = barrier::finished;
    bool alive = true;
    /// True if the worker has ended, and not because its member leaves.
    bool has_ended = false;
    /// True from its joining until it is first sent Proceed or Stop.
    bool entering = false;
    bool waiting = false;
    /// True if the last decision for it was Stop, false if it was Proceed.
    bool was_sent_stop = false;
    /// When it was last sent Stop or Proceed, or reported its status, or went on in a run.
    Time step_started_at{};
    /// When the worker arrives, Pace::record_push() stores its push here; pace_of() sets the other
    /// fields.
    barrier::Pace pace;
    /// The step at which the run that it was permitted ends; 0 if it may make only one step.
    Step run_end = 0;
    /// Sampled barriers: the workers in its last draw, the first laggard among them, and when to
    /// draw again.
    std::vector<MemberId> drawn;
    std::optional<MemberId> laggard;
    /// For whom it waits, or has waited before it was let go on; see Proceed::awaited.
    std::optional<MemberId> awaited = std::nullopt;
    Time next_draw_at = Time::max();
    StepTimes step_times;
    /// Present if the barrier tunes itself. A new coordinator begins with new tuners.
    std::optional<barrier::Tuner> tuner = std::nullopt;
  };

  /// Returns the barrier at which the worker with `state` decides now.
  [[nodiscard]] const barrier::Barrier& barrier_of(const WorkerState& state) const {
    return state.tuner ? state.tuner->barrier() : options_.barrier;
  }
  bool forget_worker(MemberId worker);
  void add_worker(MemberId worker);
  void set_first_step(MemberId worker, Step step);
  void record_status(const Context& context, const WorkerStatus& status);
  void finish_takeover(const Context& context);
  void set_step(MemberId id, Step step);
  [[nodiscard]] Step entry_step() const;
  [[nodiscard]] bool has_ended_worker() const;
  void stop_tracking(MemberId id);
  void reconsider_waiting(const Context& context, MemberId moved);
  void begin_round(const Context& context, std::optional<MemberId> moved);
  [[nodiscard]] bool should_reconsider(const WorkerState& state, MemberId moved) const;
  /// Lets the worker go on if it may, and returns whether it did. If not, and the barrier samples,
  /// sets when the worker draws again. The caller updates waiting_.
  bool try_to_release(const Context& context, MemberId id);
  /// Returns the step up to which a worker may go on; its own step if it must wait.
  [[nodiscard]] Step permitted_step(const Context& context, MemberId id);
  [[nodiscard]] barrier::Pace pace_of(MemberId id, Time now) const;
  bool may_pass(const Context& context, MemberId id);
  /// Draws the workers that the barrier sees for `id`, and finds the first laggard among them.
  void draw_others(const Context& context, MemberId id);
  void count_draw(bool passes);
  void set_next_draw(MemberId id, Time at);
  /// Sends Proceed up to step `until`, or Stop if the job stops; `until` then means nothing.
  void release(const Context& context, MemberId id, Step until);
  void send_decision(const Context& context, MemberId id) const;

  CoordinatorOptions options_;
  std::vector<WorkerState> workers_;
  std::vector<MemberId> live_workers_;
  /// The position in live_workers_ of each live worker, by id.
  std::vector<std::uint32_t> live_position_;
  /// The workers that wait, in the order of arrival.
  std::vector<MemberId> waiting_;
  /// The workers that draw again at a set time: WorkerState::next_draw_at and the worker's id.
  std::set<std::pair<Time, MemberId>> next_draws_;
  /// Counts the running workers at each step.
  std::map<Step, std::size_t> workers_at_;
  /// The lowest step of the running workers when the waiting workers were last reconsidered; if no
  /// worker ran then, the lowest step when one still ran. After a takeover without running workers:
  /// highest_held_.
  Step reviewed_min_ = 0;
  /// The highest step that any worker was allowed to make.
  Step highest_allowed_ = 1;
  /// The highest step for which workers were told to hand in.
  Step hand_in_step_ = 0;
  bool stopping_ = false;
  bool knows_all_steps_ = true;
  /// The members whose WorkerStatus the takeover still awaits.
  std::set<MemberId> unreported_;
  /// The highest step of which an owner holds an update, as far as owners have reported.
  Step highest_held_ = 0;
  Step max_lag_ = 0;
  /// The spread at the start. The workers of a job that resumes from a checkpoint may start further
  /// apart than its barrier allows.
  Step initial_spread_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t passes_ = 0;
  Timer timer_;
  /// Scratch memory of permitted_step(), may_pass() and draw_others().
  std::vector<std::uint32_t> drawn_positions_;
  std::vector<Step> seen_steps_;
  std::vector<barrier::Pace> seen_paces_;
};

}  // namespace starling::core
