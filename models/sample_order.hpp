/// Decides which samples a worker takes at a step. A plain value; any thread. An epoch is one pass
/// over the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/permutation.hpp"
#include "starling/base/random.hpp"

namespace starling::models {

/// Deals all samples to the workers once in each epoch, in a new order that depends on `seed`. The
/// i-th sample of worker w is at position i * workers + w of the epoch's order. At each step all
/// workers together therefore take one contiguous slice of the order: the same slice as a single
/// worker with a batch `workers` times as large.
class SampleOrder {
 public:
  /// `batch` is the number of samples that a worker takes at a step. Without `shuffle` every epoch
  /// has the samples in ascending order. Requires: samples, workers and batch > 0, samples < 2^32.
  SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch, std::uint64_t seed,
              bool shuffle = true)
      : samples_(samples), workers_(workers), seed_(seed), shuffle_(shuffle) {
    STARLING_CHECK(samples > 0 && workers > 0 && batch > 0 && samples <= UINT32_MAX);
    const std::uint64_t samples_per_worker = (samples - 1) / workers + 1;
    batch_size_ = std::min(batch, samples_per_worker);
    steps_per_epoch_ = (samples_per_worker - 1) / batch_size_ + 1;
  }

  /// Returns the number of samples of a full batch, at most a worker's samples of one epoch.
  [[nodiscard]] std::uint64_t batch_size() const noexcept { return batch_size_; }

  /// Returns the number of steps of one epoch, which is the same for every worker.
  [[nodiscard]] std::uint64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }

  /// Returns the number of steps of a worker in `epochs` epochs: 0 for 0 epochs, else at least 1.
  /// Requires: epochs >= 0.
  [[nodiscard]] std::uint64_t steps_in_epochs(double epochs) const {
    if (epochs == 0) return 0;
    const double steps = std::round(epochs * static_cast<double>(steps_per_epoch_));
    return static_cast<std::uint64_t>(std::clamp(steps, 1.0, 1e15));
  }

  /// Replaces `out` by the samples of `worker` at `step`; steps count from 0 and go on through all
  /// epochs. The last batch of an epoch may be short, and is empty if no samples are left for the
  /// worker.
  /// Requires: worker < workers.
  void batch(std::uint64_t worker, std::uint64_t step, std::vector<std::uint32_t>& out) const {
    STARLING_CHECK(worker < workers_);
    const std::uint64_t epoch = step / steps_per_epoch_;
    const std::uint64_t first = step % steps_per_epoch_ * batch_size_;
    const Permutation order{samples_, Random::stream(seed_, order_stream, epoch)()};
    out.clear();
    for (std::uint64_t i = first; i < first + batch_size_; ++i) {
      const std::uint64_t position = i * workers_ + worker;
      if (position >= samples_) break;
      out.push_back(static_cast<std::uint32_t>(shuffle_ ? order(position) : position));
    }
  }

 private:
  /// A key that makes the random numbers of the order independent of all others of the job's seed.
  static constexpr std::uint64_t order_stream = 0x6f72646572;

  std::uint64_t samples_;
  std::uint64_t workers_;
  std::uint64_t batch_size_ = 0;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t steps_per_epoch_ = 0;
};

}  // namespace starling::models
