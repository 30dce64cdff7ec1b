/// Simulates a small job under one barrier, message by message, and returns what the barrier makes
/// of the workers' time: how many updates, how stale they are, and how long learning takes. Plain
/// values and pure functions; thread-safe to read and call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/tools/advise/noisy_quadratic.hpp"

namespace starling::program {

/// Returns how long a step of a worker takes. Steps are counted from 1.
using StepTimes = std::function<core::Time(core::MemberId worker, core::Step step, Random& random)>;

struct TrialOptions {
  core::Mode mode = core::Mode::central;
  barrier::Barrier barrier = {};
  std::size_t workers = 4;
  StepTimes step_times = {};
  /// The virtual time that is simulated.
  core::Time horizon = std::chrono::seconds{20};
  std::uint64_t seed = 1;
  /// The number of points of the curve, evenly spaced over the horizon.
  std::size_t points = 100;
};

/// A moment of a trial.
struct TrialPoint {
  double seconds = 0;
  /// Updates of all workers together.
  double updates = 0;
  /// The step of the fastest worker less that of the slowest.
  double spread = 0;
  /// By learning rate: the loss, as a share of the loss at the start, of the model that a worker
  /// has read last.
  std::array<double, learning_rates.size()> losses{};
};

/// The figures of one run.
struct Trial {
  double updates = 0;
  /// The share of the workers' time that they spent waiting at the barrier.
  double waiting_share = 0;
  /// The largest difference ever between the steps of two workers.
  double max_lag = 0;
  /// The mean over the updates of how many updates of other workers were applied after the worker
  /// had read the model and before its update was applied; 0 if the updates of each step are
  /// applied together.
  double staleness = 0;
  /// By learning rate: the virtual time in seconds from which on each model that a worker read had
  /// a loss of at most `target_loss`; absent if this time is not before the last tenth of the run.
  /// A model that oscillates may pass such a loss by chance, and does not count.
  std::array<std::optional<double>, learning_rates.size()> seconds_to_loss{};
  std::vector<TrialPoint> curve{};
  /// Why the job failed; empty if it did not. For example, the barrier is a predicate of the user's
  /// that lets no worker go on.
  std::string error{};
};

/// Returns an Error if the barrier cannot run with the number of workers in the mode.
[[nodiscard]] Result<void> check(const TrialOptions& options);

/// Simulates the job. Requires: check(options) returns no Error, and `step_times` returns times
/// above 0.
[[nodiscard]] Trial run_trial(const TrialOptions& options);

}  // namespace starling::program
