/// The average exchange (local SGD: Stich, arXiv 1805.09767): every worker has a copy of the model,
/// and applies its updates to this copy with an optimizer of its own; after each `every` steps, all
/// workers take the mean of their copies, weighed by the samples of these steps. So a worker's
/// traffic is that of allreduce divided by `every`. docs/design/0025-average.md describes the
/// consequences.
#pragma once

#include <array>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/allreduce/round_exchange.hpp"

namespace starling::core {

/// One member's part of the exchange (round_exchange.hpp).
class AverageExchange : public RoundExchange {
 public:
  static constexpr std::string_view name = "average";
  /// Any number of steps up to sum_steps_max; these are examples, the first of which is the
  /// default.
  static constexpr std::array<std::string_view, 2> arguments{"every=8", "every=1"};
  static constexpr std::string_view summary =
      "every worker trains a copy of the model, and every few steps all take the mean of the "
      "copies";
  static constexpr ExchangeContent content = ExchangeContent::models;

  explicit AverageExchange(const ExchangeOptions& options);

  /// Refuses an argument that is not every=N with N in 1..sum_steps_max.
  [[nodiscard]] static Result<void> check_argument(std::string_view argument);
};

/// Returns the number of steps between two means. Requires: check_argument() accepts the argument.
[[nodiscard]] Step average_every(std::string_view argument);

static_assert(Exchange<AverageExchange>);

}  // namespace starling::core
