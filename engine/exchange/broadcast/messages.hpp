/// The messages of the broadcast exchange: workers send one another their updates
/// (docs/design/0013-exchanges.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/exchange/exchange.hpp"

namespace starling::core {

/// Worker to every other worker: the part of the update `step` of `worker` that belongs to `range`.
/// If `worker` is not a member any more, the sender passes on what it has received.
struct Share {
  MemberIncarnation worker;
  RangeId range = 0;
  /// Counted from 1.
  Step step = 0;
  /// The number of samples from which the update was computed, and of all the worker's steps up to
  /// and including this one.
  std::uint32_t samples = 0;
  std::uint64_t samples_total = 0;
  Slice update;
  /// The number of workers in the configuration of `worker`. Every copy weighs the update by it
  /// (Applier::weight()).
  std::uint32_t workers = 0;

  static constexpr std::string_view name = "share";
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.range, m.step, m.samples, m.samples_total, m.update, m.workers);
  }
};

/// Answers a Share: the sender's copy of the range contains the update `step` of `worker`.
struct ShareApplied {
  MemberIncarnation worker;
  RangeId range = 0;
  Step step = 0;

  static constexpr std::string_view name = "share-applied";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.range, m.step); }
};

/// A worker that has joined asks another one for its copy of a range.
struct CopyRequest {
  RangeId range = 0;

  static constexpr std::string_view name = "copy-request";
  static constexpr auto fields(auto& m) { return std::tie(m.range); }
};

/// A copy of a range.
struct RangeCopy {
  /// Without a ledger.
  RangeState state;
  /// Ascending by worker.
  std::vector<WorkerProgress> progress;
  /// The last share of each worker in the copy. Others may lack it if the worker is gone.
  std::vector<Share> last;

  static constexpr auto fields(auto& m) { return std::tie(m.state, m.progress, m.last); }
};

/// Answers a CopyRequest. nullptr: the sender has no copy itself.
struct CopyReply {
  RangeId range = 0;
  std::shared_ptr<const RangeCopy> copy;

  static constexpr std::string_view name = "copy-reply";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.copy); }
};

using BroadcastMessages = TypeList<Share, ShareApplied, CopyRequest, CopyReply>;
using BroadcastContext = ExchangeContext<Concat<BroadcastMessages, TypeList<Ended>>>;

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Share& share);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const ShareApplied& applied);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const CopyRequest& request);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const CopyReply& reply);

}  // namespace starling::core
