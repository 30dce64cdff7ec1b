#include "starling/engine/core/training/exchanges.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchange_barrier.hpp"

namespace starling::core {
namespace {

template <Exchange E>
ExchangeType type_of() {
  Result<void> (*check_argument)(std::string_view) = nullptr;
  if constexpr (requires { &E::check_argument; }) check_argument = &E::check_argument;
  bool can_round_to_bf16 = false;
  if constexpr (requires { E::can_round_to_bf16; }) can_round_to_bf16 = E::can_round_to_bf16;
  Result<void> (*check_rounding)(std::string_view) = nullptr;
  if constexpr (requires { &E::check_rounding; }) check_rounding = &E::check_rounding;
  bool model_lags = false;
  if constexpr (requires { E::model_lags; }) model_lags = E::model_lags;
  Result<void> (*check_workers)(std::string_view, std::size_t) = nullptr;
  if constexpr (requires { &E::check_workers; }) check_workers = &E::check_workers;
  bool (*shards_optimizer)(std::string_view) = nullptr;
  if constexpr (requires { &E::shards_optimizer; }) shards_optimizer = &E::shards_optimizer;
  std::vector<Bucket> (*buckets)(std::string_view, const Layout&, std::size_t) = nullptr;
  if constexpr (requires { &E::buckets; }) buckets = &E::buckets;
  return {.name = E::name,
          .arguments = E::arguments,
          .check_argument = check_argument,
          .summary = E::summary,
          .supports = &E::supports,
          .gathers = E::gathers,
          .is_barrier = E::is_barrier,
          .content = E::content,
          .can_round_to_bf16 = can_round_to_bf16,
          .check_rounding = check_rounding,
          .places_ranges = E::places_ranges,
          .model_lags = model_lags,
          .answerer = &E::answerer,
          .check_workers = check_workers,
          .shards_optimizer = shards_optimizer,
          .buckets = buckets,
          .make = [](ExchangeOptions options) { return AnyExchange{E{std::move(options)}}; }};
}

template <Exchange... Es>
std::array<ExchangeType, sizeof...(Es)> types_of(const std::variant<Es...>*) {
  return {type_of<Es>()...};
}

/// Returns nullptr if no exchange of the list has the name.
const ExchangeType* find_exchange(std::string_view name) {
  const auto types = exchange_types();
  const auto found = std::ranges::find(types, name.substr(0, name.find(':')), &ExchangeType::name);
  return found == types.end() ? nullptr : &*found;
}

Error unknown(const std::string& what, std::string_view name,
              const std::vector<std::string>& valid) {
  return Error{what + ": '" + std::string{name} + "' is unknown; " + suggest(name, valid)};
}

}  // namespace

std::span<const ExchangeType> exchange_types() {
  static const auto types = types_of(static_cast<const AnyExchange*>(nullptr));
  return types;
}

const ExchangeType& exchange_type(std::string_view name) {
  const ExchangeType* found = find_exchange(name);
  STARLING_CHECK(found != nullptr);
  return *found;
}

std::vector<Bucket> exchange_buckets(std::string_view name, const Layout& layout,
                                     std::size_t element_bytes) {
  const ExchangeType& type = exchange_type(name);
  return type.buckets != nullptr ? type.buckets(name, layout, element_bytes)
                                 : std::vector<Bucket>{};
}

Result<void> check_exchange(std::string_view name) {
  const ExchangeType* type = find_exchange(name);
  if (type == nullptr) {
    std::vector<std::string> names;
    for (const ExchangeType& one : exchange_types()) names.emplace_back(one.name);
    return unknown("exchange", name, names);
  }
  if (name == type->name) return {};
  const std::string_view argument = exchange_argument(name);
  if (type->arguments.empty())
    return Error{"exchange: " + std::string{type->name} + " takes no argument, and '" +
                 std::string{argument} + "' is given; valid: " + std::string{type->name}};
  if (type->check_argument != nullptr) return type->check_argument(argument);
  if (std::ranges::find(type->arguments, argument) == type->arguments.end())
    return unknown("exchange: " + std::string{type->name}, argument,
                   {type->arguments.begin(), type->arguments.end()});
  return {};
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

Result<void> check_barrier_of_exchange(std::string_view name, Mode mode,
                                       const barrier::Barrier& barrier,
                                       const barrier::Recheck& recheck, std::size_t workers) {
  if (auto valid = check_exchange(name, mode); !valid) return valid;
  const ExchangeType* type = find_exchange(name);
  const bool is_barrier = type->is_barrier;
  std::string_view alternative = "mode central";
  if (!type->supports(Mode::central))
    alternative =
        barrier::is_bsp(barrier) ? "exchange allreduce" : "exchange owners in mode central";
  if (auto valid = check(mode, barrier, recheck, workers, is_barrier, alternative); !valid)
    return valid;
  // Under bsp and absp, workers read the model as it is after a round.
  if (type->model_lags && barrier::is_bsp(barrier))
    return Error{"barrier " + barrier::print(barrier) + ": exchange " + std::string{name} +
                 " has no rounds; valid: ssp:s=1, or another exchange"};
  if (is_barrier && (!barrier::is_bsp(barrier) || barrier::hands_in_early(barrier)))
    return Error{"barrier " + barrier::print(barrier) + ": exchange " + std::string{name} +
                 " itself makes all workers wait for each other, as barrier bsp does; "
                 "valid: barrier bsp, or another exchange"};
  return {};
}

Result<void> check_exchange(std::string_view name, Mode mode, const barrier::Barrier& barrier,
                            const barrier::Recheck& recheck, std::size_t workers) {
  if (auto valid = check_barrier_of_exchange(name, mode, barrier, recheck, workers); !valid)
    return valid;
  const ExchangeType& type = exchange_type(name);
  if (type.check_workers == nullptr) return {};
  if (auto valid = type.check_workers(name, workers); !valid)
    return std::move(valid).error().within("workers=" + std::to_string(workers));
  return {};
}

Result<void> check_exchange_without_gradients(std::string_view name) {
  const auto sends_updates = [](const ExchangeType& type) {
    return type.content == ExchangeContent::updates;
  };
  if (sends_updates(exchange_type(name))) return {};
  return Error{"exchange: " + std::string{name} +
               " needs updates that are gradients, and those of this job are not; valid: " +
               exchanges_where(sends_updates)};
}

Result<void> check_cache(std::string_view exchange, Mode mode, const barrier::Barrier& barrier) {
  if (exchange != OwnershipExchange::name)
    return Error{"cache: with exchange " + std::string{exchange} +
                 " every worker has the whole model already; valid: exchange " +
                 std::string{OwnershipExchange::name}};
  if (!keeps_steps_centrally(mode))
    return Error{"cache: in " + print(mode) +
                 " mode no one knows what step all workers have reached, so a worker cannot tell "
                 "how old its copies are; valid: mode " +
                 print(Mode::central)};
  if (const auto* tuned = std::get_if<barrier::Tuned>(&barrier.rule);
      tuned != nullptr && tuned->measure == barrier::Tuned::Measure::staleness)
    return Error{"cache: under " + barrier::print(barrier) +
                 " reads could be as old as the largest staleness that it may choose; valid: a "
                 "barrier with a staleness, as ssp:s=4"};
  // Any step that is larger than the staleness of a barrier would do.
  constexpr Step step = Step{1} << 32U;
  const auto oldest = barrier::promised_floor(barrier, step);
  if (!oldest || *oldest == 0 || *oldest >= step)
    return Error{"cache: " + barrier::print(barrier) +
                 (oldest && *oldest > 0 ? " lets no read be old, so nothing could be kept"
                                        : " sets no bound on how old a read may be") +
                 "; valid: a barrier with a staleness, as ssp:s=4"};
  return {};
}

Result<void> check_cache(const models::Optimizer& optimizer) {
  if (models::slot_count(optimizer) == 0) return {};
  return Error{"cache: " + models::print(optimizer) +
               " has state for each parameter, which only owners keep, so a worker cannot apply "
               "its own updates to its copies; valid: sgd without momentum"};
}

}  // namespace starling::core
