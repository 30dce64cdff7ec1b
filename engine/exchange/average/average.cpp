#include "starling/engine/exchange/average/average.hpp"

#include <string>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::core {
namespace {

constexpr std::string_view prefix = "every=";

Result<Step> parse_every(std::string_view argument) {
  if (!argument.starts_with(prefix))
    return Error{"exchange: average: " + quote(argument) +
                 " is unknown; valid: every=N, for a mean after each N steps"};
  auto steps = parse_count(argument.substr(prefix.size()), 1, sum_steps_max);
  if (!steps) return Error{"exchange: average: every: " + steps.error().message};
  return *steps;
}

}  // namespace

Step average_every(std::string_view argument) {
  const auto steps = parse_every(argument.empty() ? AverageExchange::arguments.front() : argument);
  STARLING_CHECK(steps.ok());
  return *steps;
}

AverageExchange::AverageExchange(const ExchangeOptions& options)
    : RoundExchange(options, {.every = average_every(exchange_argument(options.name)),
                              .sums_changes = true}) {}

Result<void> AverageExchange::check_argument(std::string_view argument) {
  if (auto steps = parse_every(argument); !steps) return steps.error();
  return {};
}

}  // namespace starling::core
