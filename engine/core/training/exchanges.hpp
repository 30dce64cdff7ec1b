/// The closed set of exchanges. To add an exchange, write a folder in engine/exchange/ and add its
/// class here: the messages between members, the codec, the validation and the flags follow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include "starling/base/result.hpp"
#include "starling/engine/core/type_list.hpp"
#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/exchange/average/average.hpp"
#include "starling/engine/exchange/broadcast/broadcast.hpp"
#include "starling/engine/exchange/elastic/elastic.hpp"
#include "starling/engine/exchange/gossip/gossip.hpp"
#include "starling/engine/exchange/leader/leader.hpp"
#include "starling/engine/exchange/ownership/ownership.hpp"
#include "starling/engine/exchange/ownership/validation.hpp"

namespace starling::core {

/// The exchange of a member.
using AnyExchange =
    std::variant<OwnershipExchange, BroadcastExchange, GossipExchange, AllreduceExchange,
                 AverageExchange, ElasticExchange, LeaderExchange>;

namespace detail {

template <Exchange... Es>
Concat<typename Es::Messages...> messages_of(const std::variant<Es...>*);

template <class... Lists>
std::tuple<Lists...> tuple_of(TypeList<Lists...>);

template <Exchange... Es>
Concat<TypeList<ExchangeEffects<typename Es::Context::Messages>>...> effect_lists_of(
    const std::variant<Es...>*);

}  // namespace detail

/// A list of effects for each list of messages that an exchange sends.
using ExchangeEffectLists =
    decltype(detail::tuple_of(detail::effect_lists_of(static_cast<const AnyExchange*>(nullptr))));

/// The messages of all exchanges.
using ExchangeMessages = decltype(detail::messages_of(static_cast<const AnyExchange*>(nullptr)));

/// An exchange of the list, as jobs choose it by name.
struct ExchangeType {
  std::string_view name;
  std::span<const std::string_view> arguments;
  /// Refuses an invalid argument. nullptr if only those in `arguments` are valid.
  Result<void> (*check_argument)(std::string_view argument);
  std::string_view summary;
  /// The members from here to `answerer` that have no comment are as in the concept Exchange.
  bool (*supports)(Mode mode);
  bool gathers;
  bool is_barrier;
  ExchangeContent content;
  bool can_round_to_bf16;
  /// Refuses a name with which the exchange cannot round to bf16. nullptr if it can with every
  /// name.
  Result<void> (*check_rounding)(std::string_view name);
  bool places_ranges;
  bool model_lags;
  std::optional<MemberId> (*answerer)(std::string_view name, const Configuration& configuration,
                                      RangeId range);
  /// Refuses a number of workers that the exchange cannot have. nullptr if it can have any.
  Result<void> (*check_workers)(std::string_view name, std::size_t workers);
  /// As E::shards_optimizer in the concept Exchange. nullptr if E does not have this function.
  bool (*shards_optimizer)(std::string_view name);
  /// Returns the buckets of an update whose parts come early, at least two; none if the exchange of
  /// this name takes whole updates only. nullptr if it takes whole updates only under every name.
  std::vector<Bucket> (*buckets)(std::string_view name, const Layout& layout,
                                 std::size_t element_bytes);
  AnyExchange (*make)(ExchangeOptions options);
};

/// Returns all exchanges, in the list's order; the first one is the default.
[[nodiscard]] std::span<const ExchangeType> exchange_types();
/// Returns the exchange of this name, which may have an argument, as in "gossip:ring". Requires:
/// check_exchange(name).
[[nodiscard]] const ExchangeType& exchange_type(std::string_view name);

/// Returns the member that answers questions about a range; nullopt if there is none. Requires:
/// check_exchange(name).
[[nodiscard]] inline std::optional<MemberId> exchange_answerer(std::string_view name,
                                                               const Configuration& configuration,
                                                               RangeId range) {
  return exchange_type(name).answerer(name, configuration, range);
}

/// Returns the buckets in which workers hand over an update whose parts come early; none if they
/// hand over whole updates only. Requires: check_exchange(name).
[[nodiscard]] std::vector<Bucket> exchange_buckets(std::string_view name, const Layout& layout,
                                                   std::size_t element_bytes);

/// Returns the names of the exchanges for which `is_valid` is true, as "owners, broadcast".
template <class IsValid>
[[nodiscard]] std::string exchanges_where(const IsValid& is_valid) {
  std::string names;
  for (const ExchangeType& type : exchange_types())
    if (is_valid(type)) names += (names.empty() ? "" : ", ") + std::string{type.name};
  return names;
}

/// Refuses an unknown name or argument, and suggests the nearest valid one.
[[nodiscard]] Result<void> check_exchange(std::string_view name);
/// Refuses an exchange that jobs of this mode cannot use.
[[nodiscard]] Result<void> check_exchange(std::string_view name, Mode mode);
/// Refuses a job of this mode, exchange, barrier, recheck policy and number of workers if it cannot
/// work. Includes check(mode, ...) of mode.hpp and check_barrier_of_exchange().
[[nodiscard]] Result<void> check_exchange(std::string_view name, Mode mode,
                                          const barrier::Barrier& barrier,
                                          const barrier::Recheck& recheck, std::size_t workers);
/// Refuses an exchange that needs gradients, for a job whose updates are not gradients. Requires:
/// check_exchange(name).
[[nodiscard]] Result<void> check_exchange_without_gradients(std::string_view name);

/// Refuses ExchangeOptions::cache for a job in which cached values could be too old, or could never
/// be used. The cache needs an exchange whose workers read from owners, a coordinator, which tells
/// workers which step all of them have reached, and a barrier under which a read may be a bounded
/// number of steps old, at least one.
[[nodiscard]] Result<void> check_cache(std::string_view exchange, Mode mode,
                                       const barrier::Barrier& barrier);
/// Refuses ExchangeOptions::cache for an optimizer with state: only the owners have the state, so a
/// worker could not apply its own updates to its cached values.
[[nodiscard]] Result<void> check_cache(const models::Optimizer& optimizer);

}  // namespace starling::core
