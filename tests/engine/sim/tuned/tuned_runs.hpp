/// Simulates steps under a barrier, and measures what a tuned barrier steers: the share of time
/// that workers wait, and the mean lag. For tests.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {

/// A job of `workers` workers, of which the first `stragglers` are slower by a factor.
struct TunedScenario {
  std::size_t workers = 32;
  std::size_t stragglers = 1;
  double slowness = 2;
  /// The law of the step times of a worker that is no straggler; its mean is 100 ms.
  std::string step_time = "exp:100ms";
};

inline std::vector<double> slowness_of(const TunedScenario& scenario) {
  std::vector<double> slowness(scenario.workers, 1);
  std::fill_n(slowness.begin(), scenario.stragglers, scenario.slowness);
  return slowness;
}

/// The measures of one window of time: of the workers that are no stragglers, and of all.
struct Measured {
  double waiting = 0;
  double lag = 0;
  double waiting_of_all = 0;
  double lag_of_all = 0;
};

/// Measures a simulation in windows of equal length, and after a change of the scenario, if there
/// is one, in steps of the workers.
class TunedRun : public Learner {
 public:
  TunedRun(const std::string& barrier, TunedScenario scenario, Time horizon, std::size_t windows,
           std::uint64_t seed = 1)
      : scenario_(std::move(scenario)),
        options_(
            options_of(barrier, scenario_.workers, scenario_.step_time, "notify+interval:auto")),
        windows_(windows),
        workers_(scenario_.workers) {
    options_.slowness = slowness_of(scenario_);
    options_.horizon = horizon;
    options_.seed = seed;
  }

  void change_at(Time at, TunedScenario scenario) {
    change_ = at;
    changed_ = std::move(scenario);
  }

  StepResult run() { return simulate(options_, this); }

  /// Requires: run() was called, and windows [first, last) exist.
  [[nodiscard]] Measured measure(std::size_t first, std::size_t last) const {
    Sums fast;
    Sums all;
    for (std::size_t i = first; i < last; ++i) {
      fast += windows_[i].of[0];
      all += windows_[i].of[0];
      all += windows_[i].of[1];
    }
    return {fast.waiting(), fast.mean_lag(), all.waiting(), all.mean_lag()};
  }

  /// Returns the measures of the workers that are stragglers neither before nor after the change,
  /// over those steps after the change that are the `first` one of their worker, and those up to
  /// the one before the `last`. Requires: run() was called.
  [[nodiscard]] Measured measure_steps(std::size_t first, std::size_t last) const {
    Sums sums;
    for (std::size_t i = first; i < std::min(last, steps_.size()); ++i) sums += steps_[i];
    return {sums.waiting(), sums.mean_lag()};
  }

  void on_begin(MemberId worker, Step, Time now) override {
    if (change_ && now >= *change_) {
      unchanged_from_ = std::max(scenario_.stragglers, changed_.stragglers);
      scenario_ = changed_;
      options_.slowness = slowness_of(scenario_);
      options_.step_time = parse_distribution(scenario_.step_time).value();
      change_.reset();
      for (Worker& each : workers_) each.step_at_change = each.step;
    }
    add_time(worker, now, true);
  }

  void on_end(MemberId worker, Step step, Time now) override {
    add_time(worker, now, false);
    Sums* after = sums_after_change(worker);
    workers_[worker].step = step;
    double lag = 0;
    for (const Worker& other : workers_)
      lag += static_cast<double>(step - std::min(step, other.step));
    const Sums arrival{.lag = lag / static_cast<double>(workers_.size() - 1), .arrivals = 1};
    window_at(worker, now) += arrival;
    if (after != nullptr) *after += arrival;
  }

 private:
  struct Worker {
    Step step = 0;
    Step step_at_change = 0;
    Time since{};
  };
  struct Sums {
    double waited = 0;
    double lived = 0;
    double lag = 0;
    double arrivals = 0;

    Sums& operator+=(const Sums& other) {
      waited += other.waited;
      lived += other.lived;
      lag += other.lag;
      arrivals += other.arrivals;
      return *this;
    }
    [[nodiscard]] double waiting() const { return lived > 0 ? waited / lived : 0; }
    [[nodiscard]] double mean_lag() const { return arrivals > 0 ? lag / arrivals : 0; }
  };
  /// The sums of the workers that are no stragglers, and those of the stragglers.
  struct Window {
    Sums of[2];
  };

  /// Returns the sums of the step that the worker computes, or waits to begin; null before the
  /// change, and for stragglers.
  Sums* sums_after_change(MemberId worker) {
    if (!unchanged_from_ || worker < *unchanged_from_) return nullptr;
    const std::size_t i = workers_[worker].step - workers_[worker].step_at_change;
    if (i >= steps_.size()) steps_.resize(i + 1);
    return &steps_[i];
  }

  Sums& window_at(MemberId worker, Time now) {
    const auto i = static_cast<std::size_t>(now.count()) * windows_.size() /
                   static_cast<std::size_t>(options_.horizon.count());
    return windows_[std::min(i, windows_.size() - 1)].of[worker < scenario_.stragglers];
  }

  /// Adds the time since the worker's last event, which it has spent waiting or computing.
  void add_time(MemberId worker, Time now, bool was_waiting) {
    const Time since = std::exchange(workers_[worker].since, now);
    // Divides the time among the windows in which it lies, so that long waits count where they are.
    const Time length = options_.horizon / static_cast<Time::rep>(windows_.size());
    for (Time from = since; from < now;) {
      const Time to = std::min(now, (from / length + 1) * length);
      const auto part = static_cast<double>((to - from).count());
      const Sums sums{.waited = was_waiting ? part : 0, .lived = part};
      window_at(worker, from) += sums;
      if (Sums* after = sums_after_change(worker)) *after += sums;
      from = to;
    }
  }

  TunedScenario scenario_;
  /// When the scenario changes to `changed_`; nullopt if it does not, or has.
  std::optional<Time> change_;
  TunedScenario changed_;
  /// The workers from this one on were stragglers neither before nor after the change; nullopt
  /// before it.
  std::optional<std::size_t> unchanged_from_;
  StepOptions options_;
  std::vector<Window> windows_;
  /// By the number of steps that a worker has taken since the change.
  std::vector<Sums> steps_;
  std::vector<Worker> workers_;
};

}  // namespace starling::sim
