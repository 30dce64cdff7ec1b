/// Steps and barriers in virtual time, for 10^3 to 10^6 workers: what would this barrier do on so
/// many machines? No network and no messages on their way; docs/design/0005-simulation.md says why.
///
///     sim::StepOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=10").value();
///     const auto result = sim::simulate(options);
///
/// One simulation is one thread's; several may run at a time. The same options, and the seed is one
/// of them, give the same result to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/distribution.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;
using core::Time;

/// How the outcome of a draw is found.
enum class Sampling {
  /// By its exact chance, barrier::pass_probability: the cost of an update does not grow with the
  /// number of workers. Rules without a floor are drawn plainly all the same.
  exact,
  /// By drawing others, as a live worker does. The oracle of the exact one; slow.
  plain,
};

struct StepOptions {
  std::size_t workers = 1000;
  barrier::Barrier barrier = {};
  /// Who keeps the steps, which decides what messages there are.
  core::Mode mode = core::Mode::central;
  /// When a worker that was refused looks again, where the barrier draws others.
  barrier::Recheck recheck = barrier::Recheck::central();
  Distribution step_time = Distribution{laws::Exponential{std::chrono::milliseconds{100}}};
  /// By worker, a factor of each of its step times (see starling::slowness); empty: all at full
  /// speed.
  std::vector<double> slowness = {};
  /// Added to each step, whoever makes it: what computing and messages take on real machines.
  Time overhead{};
  /// How much virtual time is simulated, at most.
  Time horizon = std::chrono::seconds{40};
  /// A worker that has reached it is done, and counts as infinitely far ahead.
  Step last = barrier::finished;
  std::uint64_t seed = 1;
  Sampling sampling = Sampling::exact;
  /// Of the curve over time, evenly spaced over the horizon.
  std::size_t points = 200;
  /// Told now and then which share is done, of the horizon or of all steps, whichever is more;
  /// false ends the simulation there.
  std::function<bool(double done)> on_progress = {};
};

/// How far the workers were at one moment.
struct Point {
  Time at{};
  /// Steps finished by all workers until then.
  std::uint64_t updates = 0;
  Step min = 0;
  Step median = 0;
  Step max = 0;
  /// The share of the workers that waited at the barrier.
  double waiting = 0;

  bool operator==(const Point&) const = default;
};

/// What barrier control would have sent. Where steps are central: a message for each arrival and
/// one for each release. Where workers ask each other: a query and an answer for each other drawn,
/// a request to each laggard that is to give notice, and the notices.
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
  /// By worker, at the end.
  std::vector<Step> steps = {};
  std::vector<Point> curve = {};
  /// Steps finished by all workers.
  std::uint64_t updates = 0;
  /// Draws of others, and those that let the worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// Of the time that workers were at work or waiting, the share spent waiting.
  double waiting_share = 0;
  Messages messages = {};
  /// Virtual; less than the horizon where everyone was done or on_progress ended it.
  Time elapsed{};
  /// The largest distance there ever was between the fastest and the slowest running worker.
  Step max_lag = 0;

  bool operator==(const StepResult&) const = default;
};

/// Learning at the step level. Step 1 is a worker's first: once it has ended, the worker's step
/// is 1.
struct Learner {
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  /// The worker begins the step: it reads the model as it is now.
  virtual void on_begin(MemberId worker, Step step, Time now) = 0;
  /// The worker ends the step: its update is applied. Whom this lets pass begins after it.
  virtual void on_end(MemberId worker, Step step, Time now) = 0;
};

/// Refuses what cannot be simulated: no workers, more than 2^31 of them, a sample that is too
/// large, no horizon, steps that take no time, factors that do not fit the workers.
[[nodiscard]] Result<void> check(const StepOptions& options);

/// About how much memory simulate() takes, in bytes, to refuse what is too large before it starts.
[[nodiscard]] std::uint64_t memory_estimate(const StepOptions& options);

/// Requires: check(options).
[[nodiscard]] StepResult simulate(const StepOptions& options, Learner* learner = nullptr);

}  // namespace starling::sim
