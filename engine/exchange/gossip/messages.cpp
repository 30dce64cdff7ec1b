#include "starling/engine/exchange/gossip/messages.hpp"

namespace starling::core {

/// The weights of all workers together are at most the number of members that there may be.
bool is_valid(const ExchangeScope& scope, const PushSum& sent) {
  return is_senders_worker(scope) && sent.step < barrier::finished && sent.weight > 0 &&
         sent.weight <= static_cast<double>(scope.members_max) && !sent.value.rows &&
         !sent.value.empty() && scope.fits_range(sent.range, sent.value);
}

bool is_valid(const ExchangeScope& scope, const KnownProgress& known) {
  return is_senders_worker(scope) && known.step < barrier::finished &&
         has_valid_workers(scope, known.workers);
}

bool is_valid(const ExchangeScope& scope, const GossipReceived& received) {
  return is_senders_worker(scope) && received.step < barrier::finished;
}

bool is_valid(const ExchangeScope& scope, const ModelRequest& request) {
  return scope.has_range(request.range);
}

bool is_valid(const ExchangeScope& scope, const ModelReply& reply) {
  return scope.has_range(reply.range) && (!reply.copy || is_valid(scope, reply.range, *reply.copy));
}

}  // namespace starling::core
