#include "starling/engine/exchange/gossip/messages.hpp"

namespace starling::core {

/// All workers together have at most as much weight as there may be members.
bool is_valid(const ExchangeScope& scope, const PushSum& sent) {
  return is_from_worker(scope) && sent.step < barrier::finished && sent.weight > 0 &&
         sent.weight <= static_cast<double>(scope.members_max) && !sent.value.rows &&
         !sent.value.empty() && scope.fits_range(sent.range, sent.value);
}

bool is_valid(const ExchangeScope& scope, const KnownProgress& known) {
  return is_from_worker(scope) && known.step < barrier::finished &&
         has_valid_progress(scope, known.workers);
}

bool is_valid(const ExchangeScope& scope, const GossipReceived& received) {
  return is_from_worker(scope) && received.step < barrier::finished;
}

}  // namespace starling::core
