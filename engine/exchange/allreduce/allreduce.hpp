/// The allreduce exchange: every worker has a copy of the model; in each step all workers sum their
/// updates by a collective, and each applies the sum to its copy with the optimizer. So all copies
/// stay equal, to the last bit, and the exchange is itself the barrier bsp.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/allreduce/round_exchange.hpp"

namespace starling::core {

/// How workers sum, and when.
struct AllreduceSettings {
  /// RoundSumOptions::algorithm.
  std::string algorithm{};
  /// RoundExchangeOptions::overlaps (HPSGD: arXiv 2009.02701, with one step a round): while the
  /// updates u(k) of step k are summed, each worker computes step k + 1 with the copy w(k - 1) that
  /// contains the rounds up to k - 1. With gradients, w(k) = w(k - 1) - lr mean(u(k)), and u(k) is
  /// the gradient at w(k - 2).
  bool overlaps = false;
  /// The number of buckets; 0 if it follows from the size of the model (automatic_bucket_count()).
  std::size_t buckets = 0;

  /// RoundExchangeOptions::shards_optimizer: true if the algorithm is named, and is "parts".
  [[nodiscard]] bool shards_optimizer() const;
  bool operator==(const AllreduceSettings&) const = default;
};

/// Reads "allreduce:ALGORITHM,overlap" or "allreduce:ALGORITHM,buckets=N", in which each part may
/// be missing. Refuses other names.
[[nodiscard]] Result<AllreduceSettings> parse_allreduce(std::string_view name);
/// Returns text that parse_allreduce() reads back.
[[nodiscard]] std::string print(const AllreduceSettings& settings);

/// One member's part of the exchange (round_exchange.hpp).
class AllreduceExchange : public RoundExchange {
 public:
  static constexpr std::string_view name = "allreduce";
  /// These are examples, the first of which is the default.
  static constexpr std::array<std::string_view, 11> arguments{
      "auto",  "ring",     "tree",      "double-tree",         "doubling", "halving",
      "parts", "groups:4", "bcube:k=2", "trees:0-1+1-2+2-3x2", "overlap"};
  static constexpr std::string_view summary =
      "every worker has the whole model, and in each step all workers sum their updates";
  static constexpr ExchangeContent content = ExchangeContent::sums;

  explicit AllreduceExchange(const ExchangeOptions& options);

  /// Refuses an argument that parse_allreduce() refuses.
  [[nodiscard]] static Result<void> check_argument(std::string_view argument);
  /// Refuses a number of workers that the algorithm cannot have.
  [[nodiscard]] static Result<void> check_workers(std::string_view name, std::size_t workers);
  /// Refuses an algorithm in which several workers hold, and would round, the same partial sum.
  [[nodiscard]] static Result<void> check_rounding(std::string_view name);
  /// Returns the buckets of an update whose parts come early: at least two, or none if all ranges
  /// are one bucket, or if rounds overlap with steps, because the worker is then a step ahead of
  /// the sum already.
  [[nodiscard]] static std::vector<Bucket> buckets(std::string_view name, const Layout& layout,
                                                   std::size_t element_bytes);
  /// Returns true if the state of the optimizer is in shards.
  [[nodiscard]] static bool shards_optimizer(std::string_view name);
  /// Returns the primary of the range if the state of the optimizer is in shards, else the worker
  /// with the lowest id.
  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view name,
                                                        const Configuration& configuration,
                                                        RangeId range);
};

static_assert(Exchange<AllreduceExchange>);

}  // namespace starling::core
