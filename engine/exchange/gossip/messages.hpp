/// The messages of the gossip exchange: workers mix their copies of the model by push-sum
/// (docs/design/0023-gossip.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/exchange/exchange.hpp"
#include "starling/engine/exchange/worker_model.hpp"

namespace starling::core {

/// Worker to another worker: hands over `weight` of the sender's push-sum weight of the range, with
/// the sender's de-biased values. Their product is the part of the push-sum numerator that is
/// handed over.
struct PushSum {
  RangeId range = 0;
  /// The sender's step; once the sender has ended, a number above it for each message.
  Step step = 0;
  double weight = 0;
  Slice value;

  static constexpr std::string_view name = "push-sum";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.step, m.weight, m.value); }
};

/// Worker to another worker, before the PushSums of a step: the progress of each worker, as far as
/// the sender knows it.
struct KnownProgress {
  /// As PushSum::step.
  Step step = 0;
  /// Ascending by worker.
  std::vector<WorkerProgress> workers;

  static constexpr std::string_view name = "known-progress";
  static constexpr auto fields(auto& m) { return std::tie(m.step, m.workers); }
};

/// Answers a PushSum or a KnownProgress of this step: the sender has taken it. A worker that has
/// ended answers a PushSum once it has handed over the weight.
struct GossipReceived {
  Step step = 0;

  static constexpr std::string_view name = "gossip-received";
  static constexpr auto fields(auto& m) { return std::tie(m.step); }
};

using GossipMessages = TypeList<PushSum, KnownProgress, GossipReceived, ModelRequest, ModelReply>;
using GossipContext = ExchangeContext<Concat<GossipMessages, TypeList<Ended>>>;

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const PushSum& sent);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const KnownProgress& known);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const GossipReceived& received);

}  // namespace starling::core
