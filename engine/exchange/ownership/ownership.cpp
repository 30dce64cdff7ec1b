#include "starling/engine/exchange/ownership/ownership.hpp"

#include <utility>

namespace starling::core {

static_assert(Exchange<OwnershipExchange>);

namespace {

std::optional<RangeCache> make_cache(const ExchangeOptions& options) {
  if (!options.cache) return std::nullopt;
  return RangeCache{options.layout, options.applier};
}

}  // namespace

OwnershipExchange::OwnershipExchange(ExchangeOptions options)
    : works_(options.self.works),
      client_({.worker = options.self.id,
               .incarnation = options.self.incarnation,
               .bsp = options.bsp,
               .window = options.window},
              make_cache(options)),
      replica_(std::move(options)) {}

void OwnershipExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                         Epoch former) {
  replica_.on_configuration(context, *next, former);
  if (works_) client_.on_configuration(context, next);
}

bool OwnershipExchange::on(const Context& context, MemberId, const Pull& pull) {
  return replica_.on(context, pull);
}

bool OwnershipExchange::on(const Context& context, MemberId, const Value& value) {
  if (works_) client_.on(context, value);
  return true;
}

bool OwnershipExchange::on(const Context& context, MemberId,
                           const std::shared_ptr<const Push>& push) {
  return replica_.on(context, push);
}

bool OwnershipExchange::on(const Context& context, MemberId, const Ack& ack) {
  if (works_) client_.on(context, ack);
  return true;
}

bool OwnershipExchange::on(const Context& context, MemberId from, const Install& install) {
  return replica_.on(context, from, install);
}

bool OwnershipExchange::on(const Context& context, MemberId from, const Forward& forward) {
  return replica_.on(context, from, forward);
}

bool OwnershipExchange::on(const Context& context, MemberId from, const Held& held) {
  return replica_.on(context, from, held);
}

std::optional<MemberId> OwnershipExchange::answerer(std::string_view,
                                                    const Configuration& configuration,
                                                    RangeId range) {
  if (range >= configuration.ranges.size()) return std::nullopt;
  const std::vector<RangeOwner>& owners = configuration.ranges[range].owners;
  if (owners.empty()) return std::nullopt;
  return owners.front().id;
}

std::optional<Value> OwnershipExchange::value(RangeId range, const Rows& rows) {
  // This Pull is not sent, so its worker, the receiver of the answer, does not matter.
  const Pull pull{0, range, 0, rows};
  if (!replica_.is_primary(range) || !replica_.shard().is_valid(pull)) return std::nullopt;
  return replica_.shard().read(pull);
}

}  // namespace starling::core
