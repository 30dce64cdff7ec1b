/// Simulates a job under several barriers and seeds, and summarises and compares the runs. Plain
/// values; run_trials() uses several threads, and one thread calls it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/tools/advise/trial.hpp"
#include "starling/tools/report/statistics.hpp"

namespace starling::program {

/// Runs of one barrier that differ in their seeds alone.
struct BarrierTrials {
  barrier::Barrier barrier;
  std::vector<Trial> trials{};
};

/// Returns for each of `settings` its runs under the seeds `setting.seed`, `setting.seed` + 1, ...
/// on up to `threads` threads. The result does not depend on the number of threads. Calls
/// `on_progress` about ten times a second, on the caller's thread, with the share that is done.
/// Requires: check() accepts each of the settings.
[[nodiscard]] std::vector<BarrierTrials> run_trials(std::span<const TrialOptions> settings,
                                                    std::uint64_t seeds, std::size_t threads,
                                                    const std::function<void(double)>& on_progress);

/// The figures of a barrier over all seeds.
struct BarrierFigures {
  barrier::Barrier barrier;
  Summary updates{};
  Summary waiting_share{};
  /// See Trial::staleness.
  Summary staleness{};
  /// The largest of all runs.
  double max_lag = 0;
  /// By learning rate: virtual seconds until the target loss is reached; absent unless every run
  /// reached it.
  std::array<std::optional<Summary>, learning_rates.size()> seconds_to_loss{};
};
[[nodiscard]] BarrierFigures figures_of(const BarrierTrials& trials);

/// The measure by which barriers are compared.
enum class Measure {
  /// The most updates win.
  updates,
  /// The least stale updates win, among the barriers with at least 90 % of the most updates;
  /// without this bound, bsp would always win.
  staleness,
  /// The shortest time until the loss is at most `target_loss` wins.
  seconds_at_small_rate,
  seconds_at_large_rate,
};
inline constexpr std::array<Measure, 4> measures{Measure::updates, Measure::staleness,
                                                 Measure::seconds_at_small_rate,
                                                 Measure::seconds_at_large_rate};
/// Returns the measure as the title of a column.
[[nodiscard]] std::string print(Measure measure);

/// Barriers that are closer than this share to the best one count as equally good.
inline constexpr double equal_within = 0.05;

/// The outcome of a comparison.
struct Winner {
  /// The index of the winner.
  std::size_t barrier = 0;
  /// The indices of the other barriers that are within `equal_within` of the best one.
  std::vector<std::size_t> equals{};
};
/// Returns the winner by a measure; absent if no barrier reached the target loss or, by the number
/// of updates, if none made an update. Among barriers that are equally good, the one with the least
/// stale updates wins, and then the first.
[[nodiscard]] std::optional<Winner> winner_of(std::span<const BarrierFigures> barriers,
                                              Measure measure);

/// Returns the barriers that are compared unless the user names others, from the strictest on:
/// those that `workers` workers can run in the mode, leaving out each that decides there exactly as
/// another one does.
[[nodiscard]] std::vector<barrier::Barrier> barriers_to_compare(std::size_t workers,
                                                                core::Mode mode);

}  // namespace starling::program
