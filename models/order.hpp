/// Which samples a worker takes at a step. A plain value; safe from any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/permutation.hpp"
#include "starling/base/random.hpp"

namespace starling::models {

/// Deals `samples` samples to `workers` workers, each epoch in a new order drawn by `seed`, every
/// sample once an epoch. Worker w's i-th sample of an epoch stands at place i * workers + w of the
/// epoch's order, so what all workers take at one step is one contiguous slice of it: the very
/// slice that a lone worker with `workers` times the batch takes.
class SampleOrder {
 public:
  /// Without `shuffle` every epoch runs from 0 upward.
  /// Requires: samples, workers and batch > 0, samples < 2^32.
  SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch, std::uint64_t seed,
              bool shuffle = true)
      : samples_(samples), workers_(workers), batch_(batch), seed_(seed), shuffle_(shuffle) {
    STARLING_CHECK(samples > 0 && workers > 0 && batch > 0 && samples <= UINT32_MAX);
    const std::uint64_t share = (samples - 1) / workers + 1;
    batch_ = std::min(batch, share);
    steps_ = (share - 1) / batch_ + 1;
  }

  /// Samples of a full batch: never more than a worker's share.
  [[nodiscard]] std::uint64_t batch_size() const noexcept { return batch_; }

  /// Steps of one epoch, the same for every worker.
  [[nodiscard]] std::uint64_t steps_per_epoch() const noexcept { return steps_; }

  /// Steps of a worker in `epochs` passes: 1 at least, but none in 0. Requires: epochs >= 0.
  [[nodiscard]] std::uint64_t steps_in(double epochs) const {
    if (epochs == 0) return 0;
    const double steps = std::round(epochs * static_cast<double>(steps_));
    return static_cast<std::uint64_t>(std::clamp(steps, 1.0, 1e15));
  }

  /// Replaces `out` by the samples of `worker` at `step`, counted from 0 through all epochs. The
  /// last batch of an epoch may be short, and empty where the samples do not go round.
  /// Requires: worker < workers.
  void batch(std::uint64_t worker, std::uint64_t step, std::vector<std::uint32_t>& out) const {
    STARLING_CHECK(worker < workers_);
    const std::uint64_t epoch = step / steps_;
    const std::uint64_t first = step % steps_ * batch_;
    const Permutation order{samples_, Random::stream(seed_, order_stream, epoch)()};
    out.clear();
    for (std::uint64_t i = first; i < first + batch_; ++i) {
      const std::uint64_t place = i * workers_ + worker;
      if (place >= samples_) break;
      out.push_back(static_cast<std::uint32_t>(shuffle_ ? order(place) : place));
    }
  }

 private:
  /// Keeps the order apart from all else that a job's seed decides.
  static constexpr std::uint64_t order_stream = 0x6f72646572;

  std::uint64_t samples_;
  std::uint64_t workers_;
  std::uint64_t batch_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t steps_ = 0;
};

}  // namespace starling::models
