/// The allreduce exchange: every worker has a copy of the model; in each step all workers sum their
/// updates by a collective, and each applies the sum to its copy with the optimizer. So all copies
/// stay equal, to the last bit, and the exchange is itself the barrier bsp.
#pragma once

#include <span>
#include <string_view>

#include "starling/engine/exchange/allreduce/rounds.hpp"

namespace starling::core {

/// One member's part of the exchange (rounds.hpp).
class AllreduceExchange : public Rounds {
 public:
  static constexpr std::string_view name = "allreduce";
  static constexpr std::span<const std::string_view> arguments = allreduce_algorithms;
  static constexpr std::string_view summary =
      "every worker has the whole model, and in each step all workers sum their updates";
  static constexpr ExchangeContent content = ExchangeContent::sums;

  explicit AllreduceExchange(const ExchangeOptions& options);
};

static_assert(Exchange<AllreduceExchange>);

}  // namespace starling::core
