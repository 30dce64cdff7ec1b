/// Checks that a job on several nodes takes each sample of each epoch once, although workers join,
/// leave and die. At most the update that a worker was computing when it died or was excluded may
/// be lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/core/deals/dealer.hpp"
#include "starling/engine/core/effect.hpp"

namespace starling::sim {

/// Not thread-safe.
class SampleChecker {
 public:
  explicit SampleChecker(const core::DealOptions& options) : options_(options), dealer_(options) {}

  /// Records that the worker of an incarnation, which has the index `incarnation_index`, computes
  /// `compute`. Returns what is wrong with this; empty if nothing is. If workers hand in early, the
  /// samples must be the next ones after those of the worker's last update.
  [[nodiscard]] std::string on_compute(std::size_t incarnation_index, core::MemberId worker,
                                       const core::Compute& compute);
  /// Records that the worker hands in only the first `samples` samples of the step after `step`.
  /// Requires: on_compute() was called.
  void shorten(std::size_t incarnation_index, core::Step step, std::size_t samples) {
    batches_.at({incarnation_index, step}).resize(samples);
  }

  /// Returns the number of samples of the step after `step`. Requires: on_compute() was called.
  [[nodiscard]] std::size_t batch_size(std::size_t incarnation_index, core::Step step) const {
    return batches_.at({incarnation_index, step}).size();
  }

  /// Returns the number of steps of the deal or, if workers hand in early, of samples, after which
  /// the worker with the part `index` ends; nullopt if another limit ends it, or if the deal has no
  /// workers.
  [[nodiscard]] std::optional<std::uint64_t> expected(const core::Deal& deal,
                                                      std::size_t index) const;

  /// True if workers hand in early, so that their progress is a number of samples.
  [[nodiscard]] bool counts_samples() const noexcept { return options_.by_samples; }

  /// Returns a dealer that knows the options of the job's deals and, of the deals, only the first.
  [[nodiscard]] const core::Dealer& dealer() const noexcept { return dealer_; }

  /// Describes a sample that was taken twice. If there is none, says how many samples were lost if
  /// these are more than a batch for each of the `ended` incarnations, which died or were excluded
  /// while their worker was running. Otherwise returns an empty text. `held` has, by incarnation
  /// index, the number of steps of which an owner holds the update. `deal` is the last deal, and
  /// `taken` is what its workers have taken.
  [[nodiscard]] std::string why_not_once(const std::vector<core::Step>& held,
                                         const core::Deal& deal,
                                         const std::vector<models::Taken>& taken,
                                         std::size_t ended) const;

 private:
  core::DealOptions options_;
  /// Knows the first deal only.
  core::Dealer dealer_;
  /// By incarnation index and step: the samples of the step.
  std::map<std::pair<std::size_t, core::Step>, std::vector<models::DealtSample>> batches_;
  /// If workers hand in early, by incarnation index: the last step that the worker has computed,
  /// and from where in which deal.
  struct Computed {
    core::Step step = 0;
    core::WorkShare share;
  };
  std::map<std::size_t, Computed> last_;
};

}  // namespace starling::sim
