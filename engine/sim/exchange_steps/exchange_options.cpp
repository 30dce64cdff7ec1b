/// Checks the options of exchanges in the simulation of steps, and makes the exchanges.
#include "starling/engine/sim/exchange_steps/exchange_options.hpp"

#include <cmath>
#include <string_view>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/sim/exchange_steps/gossip_steps.hpp"
#include "starling/engine/sim/exchange_steps/leader_steps.hpp"
#include "starling/engine/sim/exchange_steps/owner_steps.hpp"
#include "starling/engine/sim/exchange_steps/sum_exchange.hpp"

namespace starling::sim {
namespace {

/// The most pairs of a worker and an owner; each pair needs some events in each step.
constexpr std::size_t owner_pairs_max = std::size_t{1} << 22U;

template <class E>
bool is_exchange(const ExchangeStepOptions& options) {
  return core::exchange_type(options.name).name == E::name;
}

bool has_owners(const ExchangeStepOptions& options) {
  return is_exchange<core::OwnershipExchange>(options) ||
         is_exchange<core::ElasticExchange>(options);
}

/// True if each draw is the same.
bool is_constant(const Distribution& distribution) {
  return std::holds_alternative<laws::None>(distribution.law()) ||
         std::holds_alternative<laws::Constant>(distribution.law());
}

Result<void> check_sum(const ExchangeStepOptions& options, std::size_t workers) {
  if (!is_constant(options.latency))
    return Error{
        "latency: " + print(options.latency) + " varies, and at the step level exchange " +
        options.name +
        " needs the same latency for all messages; valid: const:50us, --level protocol, or "
        "exchange gossip"};
  auto settings = parse_sum(options, workers);
  if (!settings) return std::move(settings).error();
  return {};
}

Result<void> check_owners(const ExchangeStepOptions& options, core::Mode mode,
                          std::size_t workers) {
  if (options.servers < 1) return Error{"shards: 0; valid: 1 or more"};
  const std::size_t owners = OwnerSteps::owners(options, mode, workers);
  if (owners <= owner_pairs_max / workers) return {};
  const std::string valid =
      workers > owner_pairs_max
          ? std::string{"fewer workers"}
          : "mode central with shards up to " + std::to_string(owner_pairs_max / workers);
  return Error{"exchange " + options.name + ": " + print_count(workers, "worker") + " and " +
               print_count(owners, "owner") +
               " send each other too many messages in each step; valid: " + valid +
               ", or exchange gossip"};
}

}  // namespace

bool is_sum(const ExchangeStepOptions& options) {
  return core::exchange_type(options.name).is_barrier;
}

Result<void> check(const ExchangeStepOptions& options, core::Mode mode, std::size_t workers) {
  if (auto valid = core::check_exchange(options.name, mode); !valid) return valid;
  if (is_exchange<core::BroadcastExchange>(options))
    return Error{"exchange " + options.name +
                 ": every worker sends to all others, which the step level does not simulate; "
                 "valid: --level protocol, or exchange owners, gossip, allreduce, average, elastic "
                 "or leader"};
  if (!(options.bytes > 0 && std::isfinite(options.bytes)))
    return Error{"bytes: " + print_number(options.bytes) + "; valid: a size above 0"};
  if (!(options.bytes_per_second >= 0 && std::isfinite(options.bytes_per_second)))
    return Error{"bandwidth: " + print_number(options.bytes_per_second) +
                 "; valid: bytes a second, 0 for no limit"};
  if (workers > 1 && is_sum(options)) return check_sum(options, workers);
  if (has_owners(options)) return check_owners(options, mode, workers);
  return {};
}

std::uint64_t bytes_per_worker(const ExchangeStepOptions& options, core::Mode mode,
                               std::size_t workers) {
  // Both are in bytes. For sums, SumClock keeps three points in time for each port and lane, and
  // scratch memory. A message in flight has a place in two tables and in the queue.
  constexpr std::uint64_t of_sums = 256;
  constexpr std::uint64_t of_message = 192;
  if (is_sum(options)) return of_sums;
  return of_message * (has_owners(options) ? OwnerSteps::owners(options, mode, workers) + 1 : 4);
}

std::unique_ptr<StepExchange> make_step_exchange(const ExchangeStepOptions& options,
                                                 core::Mode mode, std::size_t workers,
                                                 std::uint64_t seed) {
  STARLING_CHECK(check(options, mode, workers).ok());
  if (has_owners(options)) {
    const Step every = is_exchange<core::ElasticExchange>(options)
                           ? core::parse_elastic(options.name).value().every
                           : 0;
    return std::make_unique<OwnerSteps>(options, mode, workers, every, seed);
  }
  if (workers == 1) return nullptr;
  if (is_sum(options))
    return std::make_unique<SumExchange>(options, parse_sum(options, workers).value(), workers);
  if (is_exchange<core::GossipExchange>(options))
    return std::make_unique<GossipSteps>(options, core::parse_gossip(options.name).value(), workers,
                                         seed);
  return std::make_unique<LeaderSteps>(options, core::parse_leader(options.name).value(), workers,
                                       seed);
}

}  // namespace starling::sim
