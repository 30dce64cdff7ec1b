#include "starling/engine/exchange/broadcast/messages.hpp"

#include <algorithm>
#include <functional>

namespace starling::core {
namespace {

/// A worker sends no share of a range that its update does not change, so no share is empty.
bool has_valid_content(const ExchangeScope& scope, const Share& share) {
  return share.worker.id < scope.members_max && share.step < barrier::finished &&
         share.workers > 0 && share.workers <= scope.members_max && !share.update.empty() &&
         scope.fits_range(share.range, share.update);
}

}  // namespace

/// As long as the worker is a member, only the worker itself sends its share. Afterwards, any
/// worker may pass the share on.
bool is_valid(const ExchangeScope& scope, const Share& share) {
  const Configuration& now = scope.configuration;
  const bool is_own =
      share.worker.id == scope.from && now.contains(share.worker.id, share.worker.incarnation);
  return has_valid_content(scope, share) &&
         (is_own || now.is_or_was_member(share.worker.id, share.worker.incarnation)) &&
         (is_own || !now.contains(share.worker.id, share.worker.incarnation));
}

bool is_valid(const ExchangeScope& scope, const ShareApplied& applied) {
  return scope.has_range(applied.range);
}

bool is_valid(const ExchangeScope& scope, const CopyRequest& request) {
  return scope.has_range(request.range);
}

bool is_valid(const ExchangeScope& scope, const CopyReply& reply) {
  if (!scope.has_range(reply.range)) return false;
  if (!reply.copy) return true;
  const auto& [state, progress, last] = *reply.copy;
  return state.range == reply.range && !state.value.rows && !state.slots.rows &&
         scope.fits_range(reply.range, state.value) &&
         (progress.empty() || progress.back().worker.id < scope.members_max) &&
         std::ranges::adjacent_find(progress, std::greater_equal<>{}, &WorkerProgress::worker) ==
             progress.end() &&
         std::ranges::all_of(last, [&](const Share& share) {
           return share.range == reply.range && has_valid_content(scope, share);
         });
}

}  // namespace starling::core
