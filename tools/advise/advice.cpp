#include "starling/tools/advise/advice.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"

namespace starling::program {
namespace {

/// Refuses advice whose virtual time is too long, or whose simulation takes too long: while the
/// slowest worker makes `advice.options.steps` steps, all workers together would make more than
/// `updates_max` updates.
Result<void> check_work(const Advice& advice) {
  double updates = 0;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < advice.workers.size(); ++i) {
    updates += std::chrono::duration<double>(advice.horizon).count() / advice.workers[i].mean_s;
    if (advice.workers[i].mean_s > advice.workers[slowest].mean_s) slowest = i;
  }
  const std::string of_slowest = advice.options.file + ": the steps of worker " +
                                 quote(advice.names[slowest]) + " take " +
                                 print_number(advice.workers[slowest].mean_s) + " s on average; ";
  constexpr double days_max = computed_duration_max / std::chrono::days{1};
  const double days =
      advice.workers[slowest].mean_s * static_cast<double>(advice.options.steps) / (24 * 3600);
  if (days > days_max)
    return Error{of_slowest + std::to_string(advice.options.steps) + " of them take " +
                 print_number(std::ceil(days)) + " days; valid: at most " + print_number(days_max) +
                 ", by fewer --steps"};
  constexpr std::uint64_t updates_max = 1'000'000;
  if (updates <= static_cast<double>(updates_max)) return {};
  return Error{of_slowest + "while it makes " + std::to_string(advice.options.steps) +
               ", all workers together would make " + print_number(std::round(updates)) +
               " updates; valid: at most " + std::to_string(updates_max) +
               ", by fewer --steps, without single very long steps, or "
               "without that worker"};
}

}  // namespace

core::Time horizon_of(const AdviseOptions& options, const std::vector<RecordedFigures>& workers) {
  double slowest_s = 0;
  for (const RecordedFigures& worker : workers) slowest_s = std::max(slowest_s, worker.mean_s);
  return to_duration(slowest_s * static_cast<double>(options.steps) * 1e9);
}

Result<Advice> make_advice(const AdviseOptions& options, std::shared_ptr<const StepTrace> trace,
                           const std::function<void(double)>& on_progress) {
  Advice advice{.options = options, .workers = figures_of(*trace)};
  for (const RecordedWorker& worker : *trace) {
    advice.names.push_back(worker.name);
    advice.steps.push_back(worker.durations.size());
  }
  advice.horizon = horizon_of(options, advice.workers);
  if (auto valid = check_work(advice); !valid) return std::move(valid).error();
  if (advice.options.barriers.empty())
    advice.options.barriers = barriers_to_compare(trace->size(), options.mode);
  const StepTimes step_times = resampled(trace);
  std::vector<TrialOptions> settings;
  for (const barrier::Barrier& barrier : advice.options.barriers) {
    settings.push_back({.mode = options.mode,
                        .barrier = barrier,
                        .workers = trace->size(),
                        .step_times = step_times,
                        .horizon = advice.horizon,
                        .seed = options.seed,
                        .points = 1});
    if (auto valid = check(settings.back()); !valid) return std::move(valid).error();
  }
  for (const BarrierTrials& runs :
       run_trials(settings, options.seeds, options.threads, on_progress)) {
    for (const Trial& trial : runs.trials)
      if (!trial.error.empty())
        return Error{"barrier " + barrier::print(runs.barrier) + ": " + trial.error};
    advice.barriers.push_back(figures_of(runs));
  }
  for (std::size_t m = 0; m < measures.size(); ++m)
    advice.winners[m] = winner_of(advice.barriers, measures[m]);
  return advice;
}

}  // namespace starling::program
