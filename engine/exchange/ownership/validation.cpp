#include "starling/engine/exchange/ownership/validation.hpp"

namespace starling::core {
namespace {

[[nodiscard]] bool has_range(const ExchangeScope& scope, RangeId range) {
  return range < scope.configuration.ranges.size() && scope.has_range(range);
}

[[nodiscard]] bool has_valid_update(const ExchangeScope& scope, const Push& push) {
  return has_range(scope, push.range) &&
         (push.update.empty() || scope.fits_range(push.range, push.update));
}

}  // namespace

bool is_valid(const ExchangeScope& scope, const Pull& pull) {
  return pull.worker == scope.from && has_range(scope, pull.range);
}

bool is_valid(const ExchangeScope& scope, const Value& value) {
  return has_range(scope, value.range) && scope.fits_range(value.range, value.value);
}

bool is_valid(const ExchangeScope& scope, const Push& push) {
  return push.worker == scope.from && scope.configuration.contains(push.worker, push.incarnation) &&
         has_valid_update(scope, push);
}

/// Only the primary acknowledges.
bool is_valid(const ExchangeScope& scope, const Ack& ack) {
  return has_range(scope, ack.range) && !scope.configuration.ranges[ack.range].owners.empty() &&
         scope.configuration.ranges[ack.range].owners.front().id == scope.from;
}

bool is_valid(const ExchangeScope& scope, const Install& install) {
  return install.state && has_range(scope, install.state->state.range);
}

bool is_valid(const ExchangeScope& scope, const Forward& forward) {
  const MemberId worker = forward.push ? forward.push->worker : forward.ended;
  return has_range(scope, forward.range) && worker < scope.members_max &&
         (!forward.push ||
          (forward.workers > 0 && forward.workers <= scope.members_max &&
           forward.push->range == forward.range && has_valid_update(scope, *forward.push)));
}

bool is_valid(const ExchangeScope& scope, const Held& held) { return has_range(scope, held.range); }

}  // namespace starling::core
