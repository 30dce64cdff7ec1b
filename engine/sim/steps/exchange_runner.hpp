/// Internal to the simulation of steps: passes reads and writes to the simulated exchange, if there
/// is one, and counts the workers that wait for it. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "starling/engine/sim/exchange_steps/step_exchange.hpp"
#include "starling/engine/sim/steps/steps.hpp"

namespace starling::sim {

class ExchangeRunner {
 public:
  /// Makes the exchange that `options.exchange` names. There is no exchange, and reads and writes
  /// take no time, if `options.exchange` is absent, or if a lone worker has no other member to
  /// exchange with (make_step_exchange() returns nullptr).
  explicit ExchangeRunner(const StepOptions& options) {
    if (!options.exchange) return;
    exchange_ = make_step_exchange(*options.exchange, options.mode, options.workers, options.seed);
    is_barrier_ = is_sum(*options.exchange);
    phases_.resize(options.workers);
  }

  /// Returns how many workers wait for the exchange, if it is the barrier; else 0.
  [[nodiscard]] std::size_t waiting_at_barrier() const noexcept {
    return is_barrier_ ? waiting_ : 0;
  }

  /// read() begins to read the model for a step, and write() begins to write the update of a step.
  /// Both return true if that is done at once. Otherwise the worker waits until take_effects()
  /// reports that it is done.
  bool read(MemberId worker, Step step, Time now) {
    return !exchange_ || exchange_->read(worker, step, now) || wait(worker, Phase::reading);
  }
  bool write(MemberId worker, Step step, Time now) {
    return !exchange_ || exchange_->write(worker, step, now) || wait(worker, Phase::writing);
  }
  /// Tells the exchange that the time of wake-up `id` has come. Requires: there is an exchange.
  void wake(std::uint32_t id, Time now) { exchange_->wake(id, now); }

  /// Handles the effects of all calls since the last take_effects(). Calls `wake_at(time, id)` for
  /// each wake-up that the exchange asks for, and `on_read(worker)` or `on_written(worker)` for
  /// each worker whose read or write is done. These callbacks may call read() and write().
  template <class WakeAt, class OnRead, class OnWritten>
  void take_effects(WakeAt wake_at, OnRead on_read, OnWritten on_written) {
    if (!exchange_) return;
    auto& [wakes, done] = exchange_->effects;
    while (!wakes.empty() || !done.empty()) {
      for (const auto& [at, id] : std::exchange(wakes, {})) wake_at(at, id);
      for (const MemberId worker : std::exchange(done, {})) {
        --waiting_;
        std::exchange(phases_[worker], Phase::none) == Phase::reading ? on_read(worker)
                                                                      : on_written(worker);
      }
    }
  }

  /// Adds `elapsed` nanoseconds to the waiting time of each worker that waits for the exchange.
  void pass_time(double elapsed) { wait_time_ += elapsed * static_cast<double>(waiting_); }

  /// Returns the figures of the exchange; if there is no exchange, all are 0 or absent. `run_time`
  /// is the sum of the running times of all workers, in nanoseconds.
  [[nodiscard]] ExchangeFigures figures(double run_time) const {
    if (!exchange_) return {};
    ExchangeFigures figures = exchange_->figures();
    figures.waiting_share = run_time > 0 ? wait_time_ / run_time : 0;
    return figures;
  }

 private:
  enum class Phase : std::uint8_t { none, reading, writing };

  /// Records that the worker waits for the exchange. Does not block. Returns false.
  bool wait(MemberId worker, Phase phase) {
    phases_[worker] = phase;
    ++waiting_;
    return false;
  }

  std::unique_ptr<StepExchange> exchange_;
  /// By worker: the operation of the exchange that it waits for.
  std::vector<Phase> phases_;
  /// True if the exchange sums among all workers, and so is itself the barrier.
  bool is_barrier_ = false;
  /// The number of workers that wait for the exchange.
  std::size_t waiting_ = 0;
  /// The sum of the waiting times of all workers, in nanoseconds.
  double wait_time_ = 0;
};

}  // namespace starling::sim
