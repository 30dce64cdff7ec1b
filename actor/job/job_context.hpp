/// The state that the actors of one job share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/actor/compute/task.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/sample_visits.hpp"
#include "starling/actor/job/timeline.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/engine/core/deals/deal.hpp"

namespace starling::actor {

/// The last deals of a job in one process whose samples are dealt anew while it runs. Several
/// threads may use it.
class LatestDeals {
 public:
  using DealPtr = std::shared_ptr<const core::Deal>;

  /// Adds a deal that a member has adopted, unless it is known.
  void add(const DealPtr& deal) {
    const std::lock_guard lock{mutex_};
    if (!deals_.empty() && deals_.back()->number >= deal->number) return;
    if (deals_.size() == kept_max) deals_.erase(deals_.begin());
    deals_.push_back(deal);
  }

  /// Returns the last deals, the latest one last.
  [[nodiscard]] std::vector<DealPtr> get() const {
    const std::lock_guard lock{mutex_};
    return deals_;
  }

 private:
  static constexpr std::size_t kept_max = 8;

  mutable std::mutex mutex_;
  std::vector<DealPtr> deals_;
};

/// Outlives the actors.
struct JobContext {
  std::shared_ptr<Task> task;
  std::unique_ptr<ComputePool> pool;
  /// The injected delay of each step.
  Distribution delay;
  /// By worker, the factor by which its steps are slowed down; 1 is full speed.
  std::vector<double> slowdown_factors;
  std::uint64_t seed = 1;
  LatestDeals deals;
  /// In one process, if workers hand in early: when they have visited samples; else null.
  std::unique_ptr<SampleVisits> visits;
  /// Records what the workers do; null if that is not to be recorded.
  Timeline* timeline = nullptr;
  /// On nodes: where the workers' intervals go; null in one process.
  std::shared_ptr<TraceBuffer> trace_buffer;
  /// The clock of the actor system and its timers; set before the first actor is spawned.
  const caf::actor_clock* clock = nullptr;
  /// When the job started, by `clock`.
  caf::actor_clock::time_point start;

  /// The time since the job started.
  [[nodiscard]] core::Time now() const { return clock->now() - start; }
};
using JobContextPtr = std::shared_ptr<JobContext>;

}  // namespace starling::actor
