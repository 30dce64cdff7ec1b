/// The advice of `starling advise`: which barrier suits a cluster whose step times were recorded,
/// and why. Plain values; make_advice() uses several threads, and one thread calls it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/advise/step_trace.hpp"
#include "starling/tools/advise/trials.hpp"

namespace starling::program {

struct AdviseOptions {
  /// The file of the recorded step times.
  std::string file{};
  core::Mode mode = core::Mode::central;
  /// The barriers to compare; if empty, those of barriers_to_compare().
  std::vector<barrier::Barrier> barriers{};
  /// The virtual time of a run, in steps of the slowest worker. Even bsp needs about 80 to
  /// reach `target_loss` at `small_rate` (noisy_quadratic.hpp).
  std::uint64_t steps = 150;
  /// The first seed. Each barrier is run under `seeds` consecutive seeds.
  std::uint64_t seed = 1;
  std::uint64_t seeds = 10;
  /// The number of runs at the same time.
  std::size_t threads = 1;
};

/// The figures of all barriers on a recorded cluster.
struct Advice {
  AdviseOptions options{};
  /// By worker: its name, the number of its recorded steps, and its figures.
  std::vector<std::string> names{};
  std::vector<std::size_t> steps{};
  std::vector<RecordedFigures> workers{};
  /// The virtual time of a run.
  core::Time horizon{};
  std::vector<BarrierFigures> barriers{};
  /// The best barrier by each of `measures`, in their order; absent if no barrier reached the
  /// target loss.
  std::array<std::optional<Winner>, measures.size()> winners{};

  [[nodiscard]] const std::optional<Winner>& winner(Measure measure) const {
    return winners[static_cast<std::size_t>(measure)];
  }
};

/// Returns the virtual time of a run: `options.steps` steps of the slowest worker on average.
[[nodiscard]] core::Time horizon_of(const AdviseOptions& options,
                                    const std::vector<RecordedFigures>& workers);

/// Simulates the recorded cluster under each barrier and seed. Calls `on_progress` with the share
/// that is done. Returns an Error if a barrier cannot run with the number of workers in the mode,
/// if the simulation would take too long, or if a simulated job fails.
[[nodiscard]] Result<Advice> make_advice(const AdviseOptions& options,
                                         std::shared_ptr<const StepTrace> trace,
                                         const std::function<void(double)>& on_progress);

/// Returns the recorded workers, the barriers' figures and the advice as text.
[[nodiscard]] std::string advice_text(const Advice& advice);
/// Returns the same as one JSON object on one line.
[[nodiscard]] std::string advice_json(const Advice& advice);

}  // namespace starling::program
