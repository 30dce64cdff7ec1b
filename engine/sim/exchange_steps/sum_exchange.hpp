/// The exchanges in which all workers sum, allreduce and average, in the simulation of steps.
#pragma once

#include <optional>
#include <vector>

#include "starling/engine/sim/exchange_steps/step_exchange.hpp"
#include "starling/engine/sim/exchange_steps/sum_clock.hpp"

namespace starling::sim {

/// When workers sum, and by which algorithm (core::RoundExchangeOptions).
struct SumSettings {
  collective::Algorithm algorithm = {};
  Step every = 1;
  bool overlaps = false;
  /// core::RoundExchangeOptions::shards_optimizer.
  bool shards_optimizer = false;
  /// The number of buckets of an update, all of the same size. A worker has the parts of a bucket
  /// when share_of_time() (early_parts.hpp) says. The simulation of steps knows no model, so there
  /// is one bucket if the job names no number.
  std::size_t buckets = 1;
};

/// Reads the name of the exchange. Refuses an algorithm that check_algorithm() refuses for
/// `workers` members.
[[nodiscard]] Result<SumSettings> parse_sum(const ExchangeStepOptions& options,
                                            std::size_t workers);

/// Each sum is computed at once when its last worker takes part (SumClock).
class SumExchange final : public StepExchange {
 public:
  /// Requires: workers >= 2.
  SumExchange(const ExchangeStepOptions& options, const SumSettings& settings, std::size_t workers);

  bool read(MemberId worker, Step step, Time now) override;
  bool write(MemberId worker, Step step, Time now) override;
  /// The write of worker `id` is done.
  void wake(std::uint32_t id, Time) override { effects.done.push_back(id); }
  [[nodiscard]] ExchangeFigures figures() const override;

 private:
  bool write_overlapped(MemberId worker, Time now);
  void take_part(MemberId worker, double at);
  void finish_sum();
  void run_buckets();
  void wake_at(MemberId worker, double at, Time now);

  SumSettings settings_;
  SumClock clock_;
  /// By worker, in nanoseconds: when it takes part in the sum in progress, and when it has the sum
  /// before; at first 0.
  std::vector<double> begin_;
  std::vector<double> finished_;
  /// Buckets only, by worker: when it began to compute its update.
  std::vector<double> computes_from_;
  /// How many workers take part in the sum in progress.
  std::size_t taking_part_ = 0;
  /// Overlap only, by worker: true if it takes part in the sum in progress; and when it has
  /// computed its next update meanwhile, which waits for that sum.
  std::vector<bool> takes_part_;
  std::vector<std::optional<double>> ahead_;
  std::uint64_t sums_ = 0;
  double longest_ns_ = 0;
};

}  // namespace starling::sim
