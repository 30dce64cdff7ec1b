/// Decides which samples a worker takes at a step. An epoch is one pass over the data. Several
/// threads may use one SampleOrder at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "starling/base/permutation.hpp"
#include "starling/base/result.hpp"

namespace starling::models {

/// A sample as it is dealt in one epoch.
struct DealtSample {
  std::uint32_t sample = 0;
  std::uint32_t epoch = 0;

  auto operator<=>(const DealtSample&) const = default;
};

/// The part of a deal that one worker has taken: the samples of its first `steps` steps, and at
/// least its first `samples` samples. If the worker has died, perhaps only one of the numbers is
/// known; the other one is 0 then.
struct Taken {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.steps, m.samples); }
  bool operator==(const Taken&) const = default;
};

/// How samples were dealt until the workers changed.
struct FormerDeal {
  /// The first epoch that was dealt as a whole.
  std::uint64_t first_epoch = 0;
  /// The number of samples that each worker took at a step; 0 if the workers' numbers are in
  /// `sizes`.
  std::uint64_t batch = 0;
  /// The number of samples that all workers of this deal and of earlier ones had taken at its end;
  /// 0 if only `taken` is known.
  std::uint64_t samples = 0;
  /// The part that each worker has taken, by worker.
  std::vector<Taken> taken = {};
  /// If the batches were of different sizes: by worker, the number of samples of a step.
  std::vector<std::uint64_t> sizes = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.first_epoch, m.batch, m.samples, m.taken, m.sizes);
  }
  bool operator==(const FormerDeal&) const = default;
};

/// Deals all samples to the workers once in each epoch, in a new order that depends on `seed`. The
/// i-th sample of worker w is at position i * workers + w of the epoch's order. At each step all
/// workers together therefore take one contiguous slice of the order: the same slice as a single
/// worker with a batch `workers` times as large.
///
/// If workers have batches of different sizes, they also take one contiguous slice of the order at
/// each step, as large as the sum of the sizes, and worker w takes a contiguous part of it after
/// the parts of the workers before it. The last slice of an epoch, which may be shorter, is divided
/// in the same proportions.
///
/// After former deals, the samples that their workers left of the epochs that they had begun are
/// dealt first, in the same way, so that no sample is lost and none is taken twice. Whole epochs
/// follow. A worker's steps count from 0 at the beginning of the deal.
class SampleOrder {
 public:
  /// `batch` is the number of samples that a worker takes at a step. Without `shuffle` every epoch
  /// has the samples in ascending order. `former` are the deals since the last epoch that was dealt
  /// as a whole, oldest first. Requires: samples, workers and batch > 0, samples < 2^32, and
  /// check_deals(former, samples).
  SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch, std::uint64_t seed,
              bool shuffle = true, std::span<const FormerDeal> former = {});
  /// The same for workers whose batches have the sizes `sizes`. Requires: `sizes` has at least one
  /// element, each is at least 1, and their sum is at most 2^32.
  SampleOrder(std::uint64_t samples, std::span<const std::uint64_t> sizes, std::uint64_t seed,
              bool shuffle = true, std::span<const FormerDeal> former = {});

  /// Returns the number of samples of a full batch, at most a worker's samples of one epoch; if
  /// batches are of different sizes, the mean, rounded up.
  [[nodiscard]] std::uint64_t batch_size() const noexcept { return batch_size_; }

  /// Returns the number of steps of one epoch, which is the same for every worker.
  [[nodiscard]] std::uint64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }

  /// Returns the number of steps in which the workers take the samples that former deals left; 0
  /// if there are none.
  [[nodiscard]] std::uint64_t leftover_steps() const noexcept { return leftover_steps_; }
  /// Returns the first epoch that this deal deals as a whole.
  [[nodiscard]] std::uint64_t first_epoch() const noexcept { return first_epoch_; }

  /// Returns the step of the job at which the workers begin this deal if they all begin it
  /// together: first_epoch() then begins at a multiple of steps_per_epoch().
  [[nodiscard]] std::uint64_t first_step() const noexcept {
    return first_epoch_ * steps_per_epoch_ - leftover_steps_;
  }

  /// Returns the number of steps of a worker in `epochs` epochs that are dealt as a whole, rounded:
  /// 0 for 0 epochs, else at least 1. Requires: epochs >= 0.
  [[nodiscard]] std::uint64_t steps_in_epochs(double epochs) const;

  /// Returns the number of steps of this deal until the job has taken `epochs` epochs; 0 if it has
  /// taken them already. Requires: epochs >= 0.
  [[nodiscard]] std::uint64_t steps_until(double epochs) const;

  /// Returns how many epochs the job has taken if all workers have made `steps` steps of this deal.
  [[nodiscard]] double epochs_after(std::uint64_t steps) const;

  /// Returns the number of samples of `worker` at `step`. Requires: worker < workers.
  [[nodiscard]] std::uint64_t size_at(std::uint64_t worker, std::uint64_t step) const;

  /// Replaces `out` by the samples of `worker` at `step` of the deal; steps count from 0 and go on
  /// through all epochs. The last batch of an epoch may be short, and is empty if no samples are
  /// left for the worker. Requires: worker < workers.
  void batch(std::uint64_t worker, std::uint64_t step, std::vector<std::uint32_t>& out) const;
  /// The same, with the epoch of each sample.
  void batch(std::uint64_t worker, std::uint64_t step, std::vector<DealtSample>& out) const;

  // If workers hand in early (docs/design/0020-aggressive-synchronization.md), a worker's progress
  // in the deal is a number of samples, `taken`, and not of steps. These functions require that
  // all workers have batches of one size, and worker < workers.

  /// Returns how many samples the worker takes next: a batch, which may go on into the next epoch,
  /// or, if whole epochs have no samples for the worker, what is left of its part of the leftover,
  /// at most a batch.
  [[nodiscard]] std::uint64_t size_after(std::uint64_t worker, std::uint64_t taken) const;
  /// Replaces `out` by the samples that the worker takes next.
  void batch_after(std::uint64_t worker, std::uint64_t taken,
                   std::vector<std::uint32_t>& out) const;
  void batch_after(std::uint64_t worker, std::uint64_t taken, std::vector<DealtSample>& out) const;
  /// Returns how many samples the worker takes until the end of the first whole epoch: its part of
  /// what former deals left, and its part of that epoch.
  [[nodiscard]] std::uint64_t samples_of_first_epoch(std::uint64_t worker) const;
  /// Returns the number of the worker's samples of this deal until the job has taken `epochs`
  /// epochs. Requires: epochs >= 0.
  [[nodiscard]] std::uint64_t samples_until(std::uint64_t worker, double epochs) const;
  /// Returns how many epochs the job has taken if all workers have taken as large a share of their
  /// parts as `worker` has with `taken` samples.
  [[nodiscard]] double epochs_after_samples(std::uint64_t worker, std::uint64_t taken) const;

  /// Returns the samples that are left of the epochs that any worker has begun, in the order in
  /// which they would have been taken. Requires: one entry for each worker.
  [[nodiscard]] std::vector<DealtSample> left(std::span<const Taken> taken) const;

  /// Returns the number of samples that left() returns, without listing them.
  [[nodiscard]] std::uint64_t count_left(std::span<const Taken> taken) const;

  /// Returns the first epoch that no worker has begun. Requires: one entry for each worker.
  [[nodiscard]] std::uint64_t first_new_epoch(std::span<const Taken> taken) const;

 private:
  friend Result<void> check_deals(std::span<const FormerDeal> former, std::uint64_t samples);
  friend std::vector<FormerDeal> deals_after(std::span<const FormerDeal> former,
                                             const SampleOrder& order, FormerDeal last);

  /// The samples that are dealt first: what the workers of `order` left. They are listed when they
  /// are needed first.
  struct Leftover {
    std::once_flag is_listed;
    std::shared_ptr<const SampleOrder> order;
    std::vector<Taken> taken;
    std::vector<DealtSample> samples;
  };

  /// The place of a sample in a deal of consecutive positions.
  struct SamplePlace {
    std::uint64_t worker = 0;
    std::uint64_t step = 0;
    /// The number of the worker's samples before this sample.
    std::uint64_t index = 0;
  };

  /// Where a worker stands in its part of the deal.
  struct WorkerPosition {
    /// True while the worker takes what former deals left; `epoch` means nothing then.
    bool in_leftover;
    std::uint64_t epoch;
    /// The number of the worker's samples of what former deals left, or of the epoch, and how many
    /// of them the worker has taken.
    std::uint64_t share;
    std::uint64_t taken;
  };
  /// Returns where `worker` stands after `taken` samples of the deal.
  [[nodiscard]] WorkerPosition position_after(std::uint64_t worker, std::uint64_t taken) const;

  /// How the samples of a step are divided: as in FormerDeal.
  struct Parts {
    std::uint64_t workers;
    std::uint64_t batch;
    std::span<const std::uint64_t> sizes;
  };

  /// A deal that begins with `leftover_size` samples, and goes on with whole epochs from
  /// `first_epoch`.
  SampleOrder(std::uint64_t samples, const Parts& parts, std::uint64_t seed, bool shuffle,
              std::uint64_t first_epoch, std::shared_ptr<Leftover> leftover,
              std::uint64_t leftover_size);

  /// Goes on after the deals `former`.
  void follow(std::span<const FormerDeal> former);
  [[nodiscard]] const std::vector<DealtSample>& leftover() const;
  /// Calls `take(DealtSample)` for each sample of `worker` at `step`.
  template <class Take>
  void for_each_sample(std::uint64_t worker, std::uint64_t step, Take take) const;
  /// Calls `take(DealtSample)` for each of the samples that `worker` takes next after its first
  /// `taken` samples.
  template <class Take>
  void for_each_sample_after(std::uint64_t worker, std::uint64_t taken, Take take) const;
  // These functions describe how `count` samples are dealt, from the first worker on. They return
  // the number of steps, the number of samples that a worker gets in all steps and in its first
  // `steps` steps, and the place of the sample at a position.
  [[nodiscard]] std::uint64_t steps_for(std::uint64_t count) const;
  [[nodiscard]] std::uint64_t share_of(std::uint64_t worker, std::uint64_t count) const;
  [[nodiscard]] std::uint64_t share_of_steps(std::uint64_t worker, std::uint64_t count,
                                             std::uint64_t steps) const;
  [[nodiscard]] SamplePlace place_of(std::uint64_t count, std::uint64_t position) const;
  /// Returns where the part of `worker` begins in a slice of `size` samples. Requires: batches are
  /// of different sizes, worker <= workers.
  [[nodiscard]] std::uint64_t begin_of(std::uint64_t worker, std::uint64_t size) const {
    return size >= round_size_ ? begins_[worker] : size * begins_[worker] / round_size_;
  }
  /// Returns the first epoch that some worker has not taken as a whole.
  [[nodiscard]] std::uint64_t first_unfinished_epoch(std::span<const Taken> taken) const;
  [[nodiscard]] Permutation order_of(std::uint64_t epoch) const;

  std::uint64_t samples_;
  std::uint64_t workers_;
  std::uint64_t batch_size_ = 0;
  /// If batches are of different sizes: the number of samples that all workers take at a step, and
  /// the position among them at which each worker's part begins, then the end of the last part.
  std::uint64_t round_size_ = 0;
  std::vector<std::uint64_t> begins_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t steps_per_epoch_ = 0;
  std::uint64_t first_epoch_ = 0;
  std::uint64_t leftover_size_ = 0;
  std::uint64_t leftover_steps_ = 0;
  /// Null if nothing is left over, or in check_deals(), which needs only leftover_size_.
  std::shared_ptr<Leftover> leftover_;
};

/// Returns the order in which the workers of a job take their samples first. If `dynamic`, `batch`
/// is the number of samples that all workers together take at a step, divided equally at first;
/// else it is the number that each worker takes. Requires: as the constructors.
[[nodiscard]] SampleOrder first_order(std::uint64_t samples, std::uint64_t workers,
                                      std::uint64_t batch, bool dynamic, std::uint64_t seed,
                                      std::span<const FormerDeal> former = {});

/// Returns a number of steps that no worker exceeds within `epochs` epochs of `samples` samples, if
/// each step takes at least one. Requires: epochs >= 0.
[[nodiscard]] std::uint64_t steps_max_in(double epochs, std::uint64_t samples);

/// The workers of a job have taken `samples` samples before it resumes. Returns how many of these
/// count as taken by `worker` when `workers` workers go on. Requires: worker < workers.
[[nodiscard]] std::uint64_t samples_at_resume(std::uint64_t samples, std::uint64_t workers,
                                              std::uint64_t worker);

/// Returns the former deals of a job whose workers change after the deal `last`, whose order was
/// `order`, and which came after the deals `former`. Sets first_epoch in the returned `last`;
/// leaves `last` out if no worker has taken any of its samples. If the workers have taken all that
/// the deals `former` left, the result does not contain `former`, and `taken` in `last` counts only
/// what was taken after that.
[[nodiscard]] std::vector<FormerDeal> deals_after(std::span<const FormerDeal> former,
                                                  const SampleOrder& order, FormerDeal last);

/// Refuses deals of `samples` samples that no job can have had: more than 100 deals, a deal without
/// workers or with a batch of 0, with steps or samples of 2^60 and more, or with workers that are
/// more than 100 epochs apart.
[[nodiscard]] Result<void> check_deals(std::span<const FormerDeal> former, std::uint64_t samples);

}  // namespace starling::models
