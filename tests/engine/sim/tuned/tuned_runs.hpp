/// Simulates steps under a barrier, and measures what a tuned barrier steers: the share of time
/// that workers wait, and the mean lag. For tests.
#pragma once

#include <algorithm>
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

/// Measures a simulation in windows of equal length. Changes from the first scenario to the second,
/// if there is one, at `changes_at`.
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
    changes_at_ = at;
    changed_ = std::move(scenario);
  }

  StepResult run() { return simulate(options_, this); }

  /// Requires: run() was called, and windows [first, last) exist.
  [[nodiscard]] Measured measure(std::size_t first, std::size_t last) const {
    Window sum[2];
    for (std::size_t i = first; i < last; ++i)
      for (const bool is_slow : {false, true}) {
        sum[is_slow].waited += windows_[i].of[is_slow].waited;
        sum[is_slow].lived += windows_[i].of[is_slow].lived;
        sum[is_slow].lag += windows_[i].of[is_slow].lag;
        sum[is_slow].arrivals += windows_[i].of[is_slow].arrivals;
      }
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
    return {ratio(sum[0].waited, sum[0].lived), ratio(sum[0].lag, sum[0].arrivals),
            ratio(sum[0].waited + sum[1].waited, sum[0].lived + sum[1].lived),
            ratio(sum[0].lag + sum[1].lag, sum[0].arrivals + sum[1].arrivals)};
  }

  void on_begin(MemberId worker, Step, Time now) override {
    if (changes_at_ > Time{0} && now >= changes_at_) {
      scenario_ = changed_;
      options_.slowness = slowness_of(scenario_);
      options_.step_time = parse_distribution(scenario_.step_time).value();
      changes_at_ = Time{0};
    }
    add_time(worker, now, true);
  }

  void on_end(MemberId worker, Step step, Time now) override {
    add_time(worker, now, false);
    workers_[worker].step = step;
    double lag = 0;
    for (const Worker& other : workers_)
      lag += static_cast<double>(step - std::min(step, other.step));
    Window& window = window_at(worker, now);
    window.lag += lag / static_cast<double>(workers_.size() - 1);
    window.arrivals += 1;
  }

 private:
  struct Worker {
    Step step = 0;
    Time since{};
  };
  struct Window {
    double waited = 0;
    double lived = 0;
    double lag = 0;
    double arrivals = 0;
  };
  struct BothWindows {
    Window of[2];
  };

  Window& window_at(MemberId worker, Time now) {
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
      Window& window = window_at(worker, from);
      const auto part = static_cast<double>((to - from).count());
      window.lived += part;
      window.waited += was_waiting ? part : 0;
      from = to;
    }
  }

  TunedScenario scenario_;
  TunedScenario changed_;
  Time changes_at_{};
  StepOptions options_;
  std::vector<BothWindows> windows_;
  std::vector<Worker> workers_;
};

}  // namespace starling::sim
