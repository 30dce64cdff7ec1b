/// Internal to the simulation of steps: runs an exchange, if there is one, and knows which workers
/// wait for it. Not thread-safe.
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
  /// Without `options.exchange`, reads and writes take no time.
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

  /// Each returns true if it is done at once. Else the worker waits for it.
  bool read(MemberId worker, Step step, Time now) {
    return !exchange_ || exchange_->read(worker, step, now) || wait(worker, Phase::reading);
  }
  bool write(MemberId worker, Step step, Time now) {
    return !exchange_ || exchange_->write(worker, step, now) || wait(worker, Phase::writing);
  }
  void wake(std::uint32_t id, Time now) { exchange_->wake(id, now); }

  /// Takes the effects of the calls since the last time: calls `wake_at(time, id)`, and `on_read`
  /// or `on_written` with workers that wait no longer. These may call read() and write().
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

  /// Time passes, in nanoseconds.
  void pass_time(double elapsed) { wait_time_ += elapsed * static_cast<double>(waiting_); }

  /// Returns the figures, which are all 0 for a lone worker. `run_time`: how long all workers
  /// together have run, in nanoseconds.
  [[nodiscard]] ExchangeFigures figures(double run_time) const {
    if (!exchange_) return {};
    ExchangeFigures figures = exchange_->figures();
    figures.share = run_time > 0 ? wait_time_ / run_time : 0;
    return figures;
  }

 private:
  enum class Phase : std::uint8_t { none, reading, writing };

  bool wait(MemberId worker, Phase phase) {
    phases_[worker] = phase;
    ++waiting_;
    return false;
  }

  std::unique_ptr<StepExchange> exchange_;
  std::vector<Phase> phases_;
  bool is_barrier_ = false;
  std::size_t waiting_ = 0;
  double wait_time_ = 0;
};

}  // namespace starling::sim
