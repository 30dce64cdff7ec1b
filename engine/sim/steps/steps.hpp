/// Simulates the steps and barriers of 10^3 to 10^6 workers in virtual time, to predict how a
/// barrier behaves on that many machines. The messages of barriers arrive at once;
/// docs/design/0005-simulation.md gives the reasons. An exchange of updates may take time, over
/// links with latencies and bandwidths (exchange_steps/).
///
///     sim::StepOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=10").value();
///     const auto result = sim::simulate(options);
///
/// A simulation uses one thread; several may run at the same time. The same options, which include
/// the seed, give bitwise the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/result.hpp"
#include "starling/base/straggler.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/exchange_steps/exchange_options.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;
using core::Time;

/// How the outcome of a draw is decided.
enum class Sampling {
  /// By its exact probability, barrier::pass_probability(): the cost of an update does not grow
  /// with the number of workers. Draws under a rule without a floor (see barrier::floor()), a rule
  /// that decides by paces, or a weighted barrier are decided as by `plain`; so are the draws of
  /// workers that ask others which may be away.
  exact,
  /// By drawing other workers, as a live worker does. This is slow, and a reference for `exact`.
  plain,
};

struct StepOptions {
  std::size_t workers = 1000;
  barrier::Barrier barrier = {};
  /// The mode determines who keeps the steps, and so which messages are counted.
  core::Mode mode = core::Mode::central;
  /// When a worker that may not pass draws again; only for sampled barriers.
  barrier::Recheck recheck = barrier::Recheck::central();
  Distribution step_time = Distribution{laws::Exponential{std::chrono::milliseconds{100}}};
  /// A factor of the step time for each worker (see starling::slowdown_factors); empty: 1 for all.
  /// simulate() reads the factors and `step_time` whenever a step begins, so a Learner may change
  /// them to simulate workers that become slower or faster.
  std::vector<double> slowness = {};
  /// For each worker, when it is away; empty: never. Its steps then take longer. If workers ask
  /// each other, one that is away answers when it is back.
  std::vector<Absence> absences = {};
  /// A time that is added to each step of every worker, for the work of a real machine that
  /// `step_time` does not include.
  Time overhead{};
  /// How workers exchange updates, which takes time. Absent: reads and writes take none.
  std::optional<ExchangeStepOptions> exchange = std::nullopt;
  /// The simulation ends at this virtual time at the latest.
  Time horizon = std::chrono::seconds{40};
  /// The last step: a worker that has reached it has ended, and counts as infinitely far ahead.
  Step steps_max = barrier::finished;
  std::uint64_t seed = 1;
  Sampling sampling = Sampling::exact;
  /// The number of points of the curve, evenly spaced over the horizon.
  std::size_t points = 200;
  /// Called every 65536 events with the share of the horizon or of all steps that is done,
  /// whichever is larger. If it returns false, the simulation ends.
  std::function<bool(double share)> on_progress = {};
};

/// The progress of the workers at one moment.
struct Point {
  Time at{};
  /// The number of steps that all workers together had finished.
  std::uint64_t updates = 0;
  Step min = 0;
  Step median = 0;
  Step max = 0;
  /// The share of the workers that waited at the barrier.
  double waiting = 0;

  bool operator==(const Point&) const = default;
};

/// The numbers of messages that barrier control would have sent. If a coordinator keeps the steps,
/// these are one message for each arrival (Arrived) and one for each release (Proceed). If workers
/// ask each other, they are a query and an answer for each drawn worker, the requests to laggards,
/// and the notices of laggards.
struct Messages {
  std::uint64_t arrivals = 0;
  std::uint64_t releases = 0;
  std::uint64_t queries = 0;
  std::uint64_t answers = 0;
  std::uint64_t notify_requests = 0;
  std::uint64_t notices = 0;

  [[nodiscard]] std::uint64_t total() const {
    return arrivals + releases + queries + answers + notify_requests + notices;
  }
  bool operator==(const Messages&) const = default;
};

struct StepResult {
  /// The steps at the end, by worker.
  std::vector<Step> steps = {};
  std::vector<Point> curve = {};
  /// The number of steps that all workers together finished.
  std::uint64_t updates = 0;
  /// The numbers of draws, and of draws that let the worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The share of the running workers' time that they spent waiting at the barrier.
  double waiting_share = 0;
  Messages messages = {};
  /// Present if an exchange was simulated.
  std::optional<ExchangeFigures> exchange = std::nullopt;
  /// The virtual time at the end; less than the horizon if all workers ended before, or if
  /// on_progress ended the simulation.
  Time elapsed{};
  /// The largest difference ever between the steps of the fastest and the slowest running worker.
  Step max_lag = 0;

  bool operator==(const StepResult&) const = default;
};

/// A model that learns during a simulation of steps. The first step of a worker has number 1; after
/// it the worker's step is 1.
struct Learner {
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  /// Called when the worker begins the step and reads the model as it is now.
  virtual void on_begin(MemberId worker, Step step, Time now) = 0;
  /// Called when the worker finishes the step, to apply its update. Workers that pass the barrier
  /// because of this step begin after this call.
  virtual void on_end(MemberId worker, Step step, Time now) = 0;
};

/// Returns an error if neither level of simulation can have the options: if there are no workers or
/// more than 2^31, if the sample is too large, if the horizon is not longer than 0 or exceeds 200
/// years, if steps or the recheck interval take no time, if the last step is 0, or if the slowness
/// factors or the absences are invalid or not as many as the workers.
[[nodiscard]] Result<void> check_of_both_levels(const StepOptions& options);
/// Returns an error if steps cannot be simulated with the options: if check_of_both_levels()
/// refuses them, if the barrier has rounds, hands in early or moves with the descent of the loss,
/// if a coordinator keeps the steps and the barrier is weighted, if workers ask others that may be
/// away, but draw again at each arrival, if check(ExchangeStepOptions) refuses the exchange, or if
/// the exchange cannot be combined with the absences or the barrier.
[[nodiscard]] Result<void> check(const StepOptions& options);

/// Returns an estimate of the bytes of memory that simulate() uses, so that the caller can refuse a
/// run that is too large.
[[nodiscard]] std::uint64_t memory_estimate(const StepOptions& options);

/// Returns the share, 0 to 1, of a simulation that is over at `now`, after `updates` of all
/// workers.
[[nodiscard]] double share_done(const StepOptions& options, Time now, std::uint64_t updates);

/// Returns when the curve has its point number `index`, from 0 on.
[[nodiscard]] Time time_of_point(const StepOptions& options, std::size_t index);

/// Requires: check(options), and no learner if there is an exchange.
[[nodiscard]] StepResult simulate(const StepOptions& options, Learner* learner = nullptr);

}  // namespace starling::sim
