/// Steps and barriers in virtual time, for 10^3 to 10^6 workers: predicts what a barrier does on so
/// many machines. There is no network and no message in flight; docs/design/0005-simulation.md says
/// why.
///
///     sim::StepOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=10").value();
///     const auto result = sim::simulate(options);
///
/// One thread runs a simulation; several may run at a time. The same options, which include the
/// seed, give the same result to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/distributions/distribution.hpp"
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
  /// number of workers. Rules without a floor are still drawn plainly.
  exact,
  /// By drawing others, as a live worker does: slow, a reference for `exact`.
  plain,
};

struct StepOptions {
  std::size_t workers = 1000;
  barrier::Barrier barrier = {};
  /// The mode says who keeps the steps, which decides what messages there are.
  core::Mode mode = core::Mode::central;
  /// When a worker that was refused looks again, where the barrier draws others.
  barrier::Recheck recheck = barrier::Recheck::central();
  Distribution step_time = Distribution{laws::Exponential{std::chrono::milliseconds{100}}};
  /// By worker, a factor of each of its step times (see starling::slowdown_factors); empty: all at
  /// full speed.
  std::vector<double> slowness = {};
  /// Time added to each step of every worker, for computation and messages on real machines.
  Time overhead{};
  /// The most virtual time that is simulated.
  Time horizon = std::chrono::seconds{40};
  /// The last step: a worker that has reached it is done, and counts as infinitely far ahead.
  Step last = barrier::finished;
  std::uint64_t seed = 1;
  Sampling sampling = Sampling::exact;
  /// Points of the curve over time, evenly spaced over the horizon.
  std::size_t points = 200;
  /// Called now and then with the share that is done, of the horizon or of all steps, whichever is
  /// more; false ends the simulation there.
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

/// The messages that barrier control would have sent. Where steps are central: a message for each
/// arrival and one for each release. Where workers ask each other: a query and an answer for each
/// other drawn, a request to each laggard that is to give notice, and the notices.
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
  /// The share of the workers' time, at work or waiting, that they spent waiting.
  double waiting_share = 0;
  Messages messages = {};
  /// Virtual time at the end; less than the horizon where all workers were done or on_progress
  /// ended it.
  Time elapsed{};
  /// The largest distance there ever was between the fastest and the slowest running worker.
  Step max_lag = 0;

  bool operator==(const StepResult&) const = default;
};

/// A model that learns at the step level. Step 1 is a worker's first: once it has ended, the
/// worker's step is 1.
struct Learner {
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  /// Called when the worker begins the step: it reads the model as it is now.
  virtual void on_begin(MemberId worker, Step step, Time now) = 0;
  /// Called when the worker ends the step: its update is applied. Workers that this lets pass begin
  /// after it.
  virtual void on_end(MemberId worker, Step step, Time now) = 0;
};

/// Refuses options that cannot be simulated: no workers, more than 2^31 of them, a sample that is
/// too large, no horizon, steps that take no time, factors that do not fit the workers.
[[nodiscard]] Result<void> check(const StepOptions& options);

/// Estimates how many bytes of memory simulate() takes, to refuse a run that is too large before it
/// starts.
[[nodiscard]] std::uint64_t memory_estimate(const StepOptions& options);

/// Requires: check(options).
[[nodiscard]] StepResult simulate(const StepOptions& options, Learner* learner = nullptr);

}  // namespace starling::sim
