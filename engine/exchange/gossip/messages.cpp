#include "starling/engine/exchange/gossip/messages.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace starling::core {
namespace {

bool is_senders_worker(const ExchangeScope& scope) {
  const Member* sender = scope.configuration.find(scope.from);
  return sender != nullptr && sender->works;
}

bool has_valid_workers(const ExchangeScope& scope, const std::vector<WorkerProgress>& workers) {
  return std::ranges::adjacent_find(workers, std::greater_equal<>{}, &WorkerProgress::worker) ==
             workers.end() &&
         std::ranges::all_of(workers, [&](const WorkerProgress& progress) {
           return progress.worker.id < scope.members_max && progress.step < barrier::finished &&
                  progress.samples < barrier::finished;
         });
}

}  // namespace

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
  if (!scope.has_range(reply.range)) return false;
  if (!reply.copy) return true;
  const auto& [state, progress] = *reply.copy;
  return state.range == reply.range && !state.value.rows && !state.slots.rows &&
         scope.fits_range(reply.range, state.value) && has_valid_workers(scope, progress);
}

}  // namespace starling::core
