#include "starling/engine/core/training/compression.hpp"

#include <algorithm>
#include <string>

#include "starling/engine/core/training/exchanges.hpp"

namespace starling::core {

bool exchange_compresses(const models::Compression& compression, std::string_view exchange) {
  const ExchangeType& type = exchange_type(exchange);
  return models::compresses(compression) && !models::sends_sparse(compression) &&
         type.content != ExchangeContent::updates && type.can_round_to_bf16;
}

Result<void> check_compression(const models::Compression& compression, std::string_view exchange,
                               const barrier::Barrier& barrier,
                               const std::vector<models::Parameter>& parameters,
                               std::size_t element_bytes) {
  if (!models::compresses(compression)) return {};
  if (auto known = check_exchange(exchange); !known) return known;
  const bool is_sparse = models::sends_sparse(compression);
  const auto is_valid = [&](const ExchangeType& type) {
    return type.content == ExchangeContent::updates ||
           (is_sparse ? type.content == ExchangeContent::sums : type.can_round_to_bf16);
  };
  const auto refuse = [&](const std::string& why, const std::string& valid) {
    return Error{"compression " + models::print(compression) + ": " + why + "; valid: " + valid};
  };
  const ExchangeType& type = exchange_type(exchange);
  if (!is_valid(type))
    return refuse("members of exchange " + std::string{exchange} +
                      " send models to each other, and no gradients",
                  "exchange " + exchanges_where(is_valid) +
                      (type.can_round_to_bf16 ? ", or compression bf16" : ""));
  if (!is_sparse && type.check_rounding != nullptr)
    if (auto rounds = type.check_rounding(exchange); !rounds)
      return std::move(rounds).error().within("compression " + models::print(compression));
  if (barrier::moves_with_descent(barrier))
    return refuse("barrier " + barrier::print(barrier) + " measures the loss by whole gradients",
                  "another barrier, as tuned:waiting=5%");
  if (element_bytes != sizeof(float))
    return refuse("the parameters are not float32", "dtype float32");
  const auto rows = std::ranges::find(parameters, true, &models::Parameter::row_sparse);
  if (rows != parameters.end())
    return refuse("steps already send only the rows of '" + rows->name + "' that they touch",
                  "compression none");
  return {};
}

}  // namespace starling::core
