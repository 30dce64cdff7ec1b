#include "starling/engine/core/training/exchanges.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::core {
namespace {

template <Exchange E>
ExchangeType type_of() {
  return {.name = E::name,
          .summary = E::summary,
          .supports = &E::supports,
          .gathers = E::gathers,
          .places_ranges = E::places_ranges,
          .answerer = &E::answerer,
          .make = [](ExchangeOptions options) { return AnyExchange{E{std::move(options)}}; }};
}

template <Exchange... Es>
std::array<ExchangeType, sizeof...(Es)> types_of(const std::variant<Es...>*) {
  return {type_of<Es>()...};
}

}  // namespace

std::span<const ExchangeType> exchange_types() {
  static const auto types = types_of(static_cast<const AnyExchange*>(nullptr));
  return types;
}

const ExchangeType& exchange_type(std::string_view name) {
  const auto types = exchange_types();
  const auto found = std::ranges::find(types, name, &ExchangeType::name);
  STARLING_CHECK(found != types.end());
  return *found;
}

Result<void> check_exchange(std::string_view name) {
  const auto types = exchange_types();
  if (std::ranges::find(types, name, &ExchangeType::name) != types.end()) return {};
  std::vector<std::string> names;
  for (const ExchangeType& type : types) names.emplace_back(type.name);
  return Error{"exchange: '" + std::string{name} + "' is unknown; " +
               suggest(std::string{name}, names)};
}

Result<void> check_exchange(std::string_view name, Mode mode) {
  if (auto known = check_exchange(name); !known) return known;
  const ExchangeType& type = exchange_type(name);
  if (type.supports(mode)) return {};
  std::string valid;
  for (const Mode other : {Mode::central, Mode::hybrid, Mode::peer})
    if (type.supports(other)) valid += (valid.empty() ? "" : ", ") + print(other);
  return Error{"exchange: " + std::string{name} + " does not work in " + print(mode) +
               " mode; valid: mode " + valid + ", or another exchange"};
}

}  // namespace starling::core
