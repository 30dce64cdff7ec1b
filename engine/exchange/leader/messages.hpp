/// The messages of the leader exchange: workers send each other their losses, and ask the one with
/// the lowest loss for its values (docs/design/0028-leader.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

#include "starling/engine/exchange/worker_model.hpp"

namespace starling::core {

/// Worker to another worker: how far the sender has got, and its loss.
struct LossReport {
  Step step = 0;
  /// The number of samples of the steps up to `step`.
  std::uint64_t samples = 0;
  /// The mean loss over the samples since the sender's last report; nullopt if there were none, and
  /// in the report of a worker that has ended.
  std::optional<double> loss;

  static constexpr std::string_view name = "loss-report";
  static constexpr auto fields(auto& m) { return std::tie(m.step, m.samples, m.loss); }
};

/// Answers the LossReport of this step.
struct LossReceived {
  Step step = 0;

  static constexpr std::string_view name = "loss-received";
  static constexpr auto fields(auto& m) { return std::tie(m.step); }
};

/// Worker to its leader, after step `step` of the worker: asks for the current values of a range.
struct LeaderRequest {
  RangeId range = 0;
  Step step = 0;

  static constexpr std::string_view name = "leader-request";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.step); }
};

/// Answers a LeaderRequest. `values` is empty if the sender has no copy.
struct LeaderReply {
  RangeId range = 0;
  /// The step of the request.
  Step step = 0;
  Slice values;

  static constexpr std::string_view name = "leader-reply";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.step, m.values); }
};

using LeaderMessages =
    TypeList<LossReport, LossReceived, LeaderRequest, LeaderReply, ModelRequest, ModelReply>;
using LeaderContext = ExchangeContext<Concat<LeaderMessages, TypeList<Ended>>>;

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const LossReport& report);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const LossReceived& received);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const LeaderRequest& request);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const LeaderReply& reply);

}  // namespace starling::core
