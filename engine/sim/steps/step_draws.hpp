/// Internal to the simulation of steps: decides draws by drawing other workers, as live workers do.
/// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "starling/barrier/tuner.hpp"
#include "starling/engine/core/worker/draw_weights.hpp"
#include "starling/engine/sim/absences.hpp"
#include "starling/engine/sim/steps/step_counts.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/engine/sim/steps/waiter.hpp"

namespace starling::sim {

/// Returns true if the outcome of a draw is decided by its probability (Sampling::exact).
[[nodiscard]] bool decides_by_probability(const StepOptions& options);

class StepDraws {
 public:
  /// If `sends_notices`, the result of a failed draw has a laggard. `options` must outlive this
  /// object.
  StepDraws(const StepOptions& options, bool sends_notices);

  /// Returns the largest memory that a worker takes here, in bytes.
  [[nodiscard]] static std::uint64_t bytes_per_worker(const StepOptions& options);

  [[nodiscard]] const Absences& absences() const noexcept { return absences_; }

  /// Records that the worker arrives at its barrier, or passes it. A barrier that tunes itself
  /// changes then, and so do the paces by which a rule decides.
  void arrive(MemberId worker, Time now, Step step) {
    if (!tuners_.empty()) tuners_[worker].arrive(now, step);
    if (!paced_.empty()) record_push(worker, now, step);
  }
  void pass(MemberId worker, Time now) {
    if (!tuners_.empty()) tuners_[worker].pass(now);
    if (!paced_.empty()) paced_[worker].step_began_at = now;
  }
  /// Returns true if the worker passes at `step` without asking, because it is in a run
  /// (barrier::run_to()).
  [[nodiscard]] bool is_in_run(MemberId worker, Step step) const {
    return !paced_.empty() && step < paced_[worker].run_end;
  }
  /// Returns the barrier at which the worker decides now.
  [[nodiscard]] const barrier::Barrier& barrier_of(MemberId worker) const {
    return tuners_.empty() ? options_.barrier : tuners_[worker].barrier();
  }

  /// Returns true if the worker's floor is 0, which all workers have reached (see barrier::floor),
  /// or if its tuner has chosen a sample size of 0. `counts` has the floors if draws are decided by
  /// probability, and is nullptr otherwise.
  [[nodiscard]] bool needs_no_draw(MemberId worker, Step step, const StepCounts* counts) const {
    if (!tuners_.empty() && barrier_of(worker).sample == 0) return true;
    return counts ? counts->group(step).floor == 0
                  : barrier::floor(barrier_of(worker), step) == Step{0};
  }

  /// Returns the step that a worker at `step` reports to others.
  [[nodiscard]] Step reported(Step step) const {
    return step >= options_.steps_max ? barrier::finished : step;
  }

  /// Returns the weights with which `worker` draws at `now`, as barrier::draw_weighted() takes
  /// them; empty if it draws uniformly. The result is valid until the next call.
  [[nodiscard]] std::span<const barrier::Weighted> weights_of(MemberId worker,
                                                              std::span<const Step> steps,
                                                              Time now);

  /// Decides by the steps of drawn workers, or of all others if the barrier is not sampled, whether
  /// `worker` may pass at `now`. `steps` has all workers' steps.
  ///
  /// If workers ask each other, a worker that is away answers when it is back. If it is not back
  /// within core::query_timeout, it counts as behind, as in core::SampleGate. Its answer is known
  /// now, for it makes no step while it is away.
  [[nodiscard]] DrawResult decide(MemberId worker, std::span<const Step> steps, Time now,
                                  Random& random);
  /// Decides by the probability that `counts` has.
  [[nodiscard]] DrawResult decide(MemberId worker, const StepCounts& counts,
                                  std::span<const Step> steps, Random& random) const;

 private:
  /// A drawn worker that is away.
  struct Silent {
    Time back_at{};
    MemberId worker = 0;
  };

  /// A worker under a rule that decides by paces.
  struct PacedWorker {
    barrier::Pace pace;
    Time step_began_at{};
    /// The step at which the worker's last run ends; 0 if it has had no run.
    Step run_end = 0;
  };

  void record_push(MemberId worker, Time now, Step step);
  void pick(MemberId worker, std::span<const Step> steps, Time now, Random& random);
  void await_silent(MemberId worker, std::span<const Step> steps, Time now, DrawResult& result);
  /// Records for the draw of `worker` that `other` is at `step`.
  void see(MemberId worker, MemberId other, Step step);
  /// Records that a drawn worker has not answered in time: it counts as at step 0.
  void see_silence();
  /// Returns true if one laggard decides the worker's draw, as in core::SampleGate.
  [[nodiscard]] bool can_laggard_decide(MemberId worker) const {
    return paced_.empty() || paced_[worker].pace.waits;
  }
  /// Decides by what the worker has seen whether it passes.
  [[nodiscard]] bool decide_by_seen(MemberId worker, Step own_step);

  const StepOptions& options_;
  bool sends_notices_;
  bool is_sampled_;
  Absences absences_;
  /// True if workers that are away do not answer.
  bool may_be_silent_;
  /// By worker, if the barrier tunes itself; else empty.
  std::vector<barrier::Tuner> tuners_;
  /// By worker, if the rule decides by paces; else empty.
  std::vector<PacedWorker> paced_;
  /// Draws the random number of each push (Pace::chance).
  Random chance_random_;
  /// By worker; empty if draws are uniform.
  std::vector<core::DrawWeights> weights_;
  /// The ids of all workers, if draws are weighted.
  std::vector<MemberId> ids_;
  /// Scratch memory of decide(). A position is an index into the list of all other workers.
  std::vector<std::uint32_t> drawn_positions_;
  std::vector<Step> seen_steps_;
  std::vector<barrier::Pace> seen_paces_;
  std::vector<Silent> silent_;
};

}  // namespace starling::sim
