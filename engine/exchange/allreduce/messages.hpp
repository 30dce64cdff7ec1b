/// The messages of exchanges with rounds: workers sum by a collective
/// (docs/design/0024-allreduce.md). Each message names the epoch of the sender's configuration. A
/// member of a later epoch ignores the message, but answers a RoundReport with its configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/exchange/collective/executor.hpp"
#include "starling/engine/exchange/exchange.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {

/// Worker to worker: one slice of a chunk of the vector that the workers sum (collective::Piece).
struct SumPiece {
  Epoch epoch = 0;
  /// Counts the sums of the epoch, from 1; each bucket of an update has a sum of its own.
  collective::CollectiveId sum = 0;
  std::uint32_t slice = 0;
  collective::ChunkId chunk = 0;
  /// The round of the move in the collective's schedule.
  std::uint32_t move_round = 0;
  /// Without Slice::rows. Empty if the chunk has no elements.
  Slice values;

  static constexpr std::string_view name = "sum-piece";
  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.sum, m.slice, m.chunk, m.move_round, m.values);
  }
};

/// Worker to the workers that send to it: the sender has finished `slices` slices of a sum
/// (collective::Ack).
struct SumAck {
  Epoch epoch = 0;
  collective::CollectiveId sum = 0;
  std::uint32_t slices = 0;

  static constexpr std::string_view name = "sum-ack";
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.sum, m.slices); }
};

/// Worker to all others when it adopts a configuration: the last round that it has completed.
struct RoundReport {
  Epoch epoch = 0;
  /// The last round that the sender has completed; nullopt if it has no copy of the model.
  std::optional<Step> round;
  /// If the state of the optimizer is in shards: the ranges, ascending, of which the sender has the
  /// state after `round`, and the ranges of which it has the state after the round that follows.
  std::vector<RangeId> state{};
  std::vector<RangeId> next_state{};

  static constexpr std::string_view name = "round-report";
  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.round, m.state, m.next_state);
  }
};

/// Worker to another one that has what the sender lacks: asks for a range after a round.
struct CatchUpRequest {
  Epoch epoch = 0;
  RangeId range = 0;
  Step round = 0;
  /// True if the sender lacks the state of the optimizer.
  bool wants_state = true;

  static constexpr std::string_view name = "catch-up-request";
  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.range, m.round, m.wants_state);
  }
};

/// Answers a CatchUpRequest. Without the state of the optimizer if it was not asked for.
struct CatchUpReply {
  Epoch epoch = 0;
  RangeId range = 0;
  std::shared_ptr<const ModelCopy> copy;

  static constexpr std::string_view name = "catch-up-reply";
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.range, m.copy); }
};

using AllreduceMessages = TypeList<SumPiece, SumAck, RoundReport, CatchUpRequest, CatchUpReply>;
using AllreduceContext = ExchangeContext<Concat<AllreduceMessages, TypeList<Ended>>>;

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const SumPiece& piece);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const SumAck& ack);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const RoundReport& report);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const CatchUpRequest& request);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const CatchUpReply& reply);

}  // namespace starling::core
