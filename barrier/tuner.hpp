/// Moves the staleness s and the sample size beta of one worker's barrier, if the barrier tunes
/// itself (rules/tuned.hpp). The control law says how s and beta change with what the worker
/// observes; docs/design/0017-tuned-barrier.md derives it. No clock and no randomness; not
/// thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/descent.hpp"

namespace starling::barrier {

/// A worker's observations of one of its steps, and of the barrier after it.
struct Observation {
  /// How long the step took, and how long the worker then waited at the barrier, in seconds.
  double step_time = 0;
  double waited = 0;
  /// True if a draw did not let the worker pass. A worker that was not refused has waited only for
  /// answers.
  bool was_refused = false;
  /// How many workers answered the first draw at the barrier; the mean and the largest of their
  /// lags, in steps. The lag of a worker that is not behind counts as 0.
  std::size_t answers = 0;
  double mean_lag = 0;
  double largest_lag = 0;
  /// How many of the workers that answered are behind this one, minus how many are not, divided by
  /// `answers`: 1 if all are behind, -1 if none is, and 0 without answers. A worker at the same
  /// step is not behind, because it reached that step earlier.
  double lead = 0;
  /// How steeply the loss falls from the parameters that the worker read in its former step to
  /// those that it read in this one (descent.hpp); nullopt if that is unknown.
  std::optional<Descent> descent = std::nullopt;
};

/// The state of the control law: s and beta, which need not be whole numbers, and smoothed
/// observations.
struct TunerState {
  /// log2(beta).
  double sample_level = 0;
  /// log2(1 + s).
  double staleness_level = 0;
  /// The smoothed step time in seconds, and the smoothed lag in steps; absent before the first
  /// measurement.
  std::optional<double> step_time = std::nullopt;
  std::optional<double> mean_lag = std::nullopt;
  /// The smoothed lead.
  double lead = 0;
  /// Used under Tuned::Measure::progress only: the share of its time that the worker now aims to
  /// wait at the barrier, and the smoothed descents.
  double waiting_share = 0;
  Descent descent = {};

  [[nodiscard]] double staleness() const;
  [[nodiscard]] double beta() const;

  bool operator==(const TunerState&) const = default;
};

/// Returns the state with which a worker begins.
[[nodiscard]] TunerState first_state(const Tuned& rule);

/// The control law: returns the state after one more observation.
[[nodiscard]] TunerState next(const Tuned& rule, TunerState state, const Observation& seen);

/// One worker's tuner: collects the worker's observations, and says by which s and beta the worker
/// decides.
/// In the state, s and beta may be fractions, but the worker decides by whole numbers. The tuner
/// rounds up or down at each step, so that the means over the steps are those of the state.
class Tuner {
 public:
  using Time = std::chrono::nanoseconds;

  explicit Tuner(Tuned rule);

  /// Returns the barrier at which the worker decides now: SSP over a sample. Only pass() changes
  /// this barrier.
  [[nodiscard]] const Barrier& barrier() const noexcept { return barrier_; }
  [[nodiscard]] const TunerState& state() const noexcept { return state_; }

  /// Call this when the worker, at `own_step`, arrives at the barrier. `descent` is that of its
  /// latest step.
  void arrive(Time now, Step own_step, std::optional<Descent> descent = std::nullopt);
  /// Call this when the worker draws others.
  void begin_draw() noexcept { ++draws_; }
  /// Call this when a worker of the latest draw has answered that it is at `other_step`. Only
  /// answers to the first draw since arrive() count, because later ones depend on how the first was
  /// decided.
  void see(Step other_step);
  /// Call this when the worker passes the barrier. Does nothing if the worker has not arrived.
  void pass(Time now);

 private:
  void choose();

  Tuned rule_;
  TunerState state_;
  Barrier barrier_;
  /// The fractions that choose() left over when it last rounded s and beta down. It adds them to s
  /// and beta before it rounds the next time.
  double staleness_carry_ = 0;
  double beta_carry_ = 0;

  std::optional<Time> passed_at_;
  std::optional<Time> arrived_at_;
  Step own_step_ = 0;
  std::optional<Descent> descent_;
  std::size_t draws_ = 0;
  std::size_t answers_ = 0;
  std::size_t behind_ = 0;
  double lag_sum_ = 0;
  double largest_lag_ = 0;
};

/// The sums of s and of beta over `workers` workers. A summary shows the means.
struct TunedSum {
  std::uint64_t workers = 0;
  double staleness = 0;
  double beta = 0;

  /// Adds the current s and beta of a worker. Does nothing if `tuner` is absent, because the
  /// worker's barrier does not tune itself.
  void add(const std::optional<Tuner>& tuner);
  void add(const TunedSum& other);
  /// Both functions require: workers > 0.
  [[nodiscard]] double mean_staleness() const { return staleness / static_cast<double>(workers); }
  [[nodiscard]] double mean_beta() const { return beta / static_cast<double>(workers); }

  static constexpr auto fields(auto& m) { return std::tie(m.workers, m.staleness, m.beta); }
};

/// Returns text for a summary, as `s 0, beta 0.43; means over the workers`; empty if the sums are
/// over no workers.
[[nodiscard]] std::string print(const TunedSum& sum);

/// Returns a tuner if the barrier tunes itself; else nullopt.
[[nodiscard]] std::optional<Tuner> make_tuner(const Barrier& barrier);

}  // namespace starling::barrier
