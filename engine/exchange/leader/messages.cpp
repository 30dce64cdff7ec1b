#include "starling/engine/exchange/leader/messages.hpp"

#include <cmath>

namespace starling::core {

bool is_valid(const ExchangeScope& scope, const LossReport& report) {
  return is_from_worker(scope) && report.step < barrier::finished &&
         report.samples < barrier::finished && (!report.loss || std::isfinite(*report.loss));
}

bool is_valid(const ExchangeScope& scope, const LossReceived& received) {
  return is_from_worker(scope) && received.step < barrier::finished;
}

bool is_valid(const ExchangeScope& scope, const LeaderRequest& request) {
  return is_from_worker(scope) && scope.has_range(request.range) &&
         request.step < barrier::finished;
}

bool is_valid(const ExchangeScope& scope, const LeaderReply& reply) {
  return is_from_worker(scope) && scope.has_range(reply.range) && reply.step < barrier::finished &&
         (reply.values.empty() ||
          (!reply.values.rows && scope.fits_range(reply.range, reply.values)));
}

}  // namespace starling::core
