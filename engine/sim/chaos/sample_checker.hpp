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

  /// The worker of an incarnation, which has the slot `slot`, computes the step after `step`.
  void on_compute(std::size_t slot, core::MemberId worker, core::Step step,
                  const core::WorkShare& share);

  /// Returns the number of samples of the step after `step`. Requires: on_compute() was called.
  [[nodiscard]] std::size_t batch_size(std::size_t slot, core::Step step) const {
    return batches_.at({slot, step}).size();
  }

  /// Returns the number of steps of the deal after which a worker ends; nullopt if another limit
  /// ends it, or if the deal has no workers.
  [[nodiscard]] std::optional<std::uint64_t> steps_wanted(const core::Deal& deal) const;

  /// Describes a sample that was taken twice, or that nobody took although nobody has died; empty
  /// if there is none. `held` has, by slot, the number of steps of which an owner holds the update,
  /// `deal` is the last deal, and `taken` what its workers have taken. `ended` is the number of
  /// incarnations that died or were excluded while their worker was running.
  [[nodiscard]] std::string why_not_once(const std::vector<core::Step>& held,
                                         const core::Deal& deal,
                                         const std::vector<models::Taken>& taken,
                                         std::size_t ended) const;

 private:
  core::DealOptions options_;
  /// Knows the first deal only.
  core::Dealer dealer_;
  /// By slot and step: the samples of the step.
  std::map<std::pair<std::size_t, core::Step>, std::vector<models::DealtSample>> batches_;
};

}  // namespace starling::sim
