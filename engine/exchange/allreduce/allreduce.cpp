#include "starling/engine/exchange/allreduce/allreduce.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

std::string_view algorithm_of(const ExchangeOptions& options) {
  const std::string_view argument = exchange_argument(options.name);
  if (argument.empty()) return allreduce_algorithms.front();
  const auto found = std::ranges::find(allreduce_algorithms, argument);
  STARLING_CHECK(found != allreduce_algorithms.end());
  return *found;
}

}  // namespace

AllreduceExchange::AllreduceExchange(const ExchangeOptions& options)
    : Rounds(options, {.algorithm = algorithm_of(options)}) {}

}  // namespace starling::core
