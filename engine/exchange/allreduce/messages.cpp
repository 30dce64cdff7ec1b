#include "starling/engine/exchange/allreduce/messages.hpp"

#include <algorithm>
#include <functional>

namespace starling::core {
namespace {

bool has_valid_origin(const ExchangeScope& scope, Epoch epoch) {
  return is_from_worker(scope) && epoch <= scope.configuration.epoch;
}

}  // namespace

/// Does not check the number of elements: only the sum knows it.
bool is_valid(const ExchangeScope& scope, const SumPiece& piece) {
  const Slice& values = piece.values;
  return has_valid_origin(scope, piece.epoch) && !values.rows &&
         (values.empty() || fits(Range{0, values.count, 0, {}}, values, scope.element_bytes));
}

bool is_valid(const ExchangeScope& scope, const SumAck& ack) {
  return has_valid_origin(scope, ack.epoch);
}

bool is_valid(const ExchangeScope& scope, const RoundReport& report) {
  const auto are_valid = [&](const std::vector<RangeId>& ranges) {
    return std::ranges::adjacent_find(ranges, std::greater_equal<>{}) == ranges.end() &&
           (ranges.empty() || scope.has_range(ranges.back()));
  };
  return has_valid_origin(scope, report.epoch) && report.round.value_or(0) < barrier::finished &&
         are_valid(report.state) && are_valid(report.next_state);
}

bool is_valid(const ExchangeScope& scope, const CatchUpRequest& request) {
  return has_valid_origin(scope, request.epoch) && scope.has_range(request.range) &&
         request.round < barrier::finished;
}

bool is_valid(const ExchangeScope& scope, const CatchUpReply& reply) {
  return has_valid_origin(scope, reply.epoch) && reply.copy &&
         is_valid(scope, reply.range, *reply.copy);
}

}  // namespace starling::core
