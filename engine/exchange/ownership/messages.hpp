/// The messages of the ownership exchange: workers pull ranges from the ranges' owners and push
/// updates to them, and the owners of a range keep their replicas equal
/// (docs/design/0006-range-ownership.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/exchange/exchange.hpp"

namespace starling::core {

/// Worker to owner: asks for a range, or some of its rows, for computing the step after
/// `after_step`. In bulk-synchronous jobs the owner answers once it has applied round `after_step`.
struct Pull {
  MemberId worker;
  RangeId range;
  Step after_step;
  Rows rows;

  static constexpr std::string_view name = "pull";
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.range, m.after_step, m.rows);
  }
};

/// Worker to owner: the part of the worker's update `step` (counted from 1) that belongs to
/// `range`. An empty slice says that the update does not change the range.
struct Push {
  MemberId worker;
  Incarnation incarnation;
  RangeId range;
  Step step;
  /// The number of samples from which the update was computed.
  std::uint32_t samples;
  /// The number of samples of all the worker's steps up to and including this one, including steps
  /// that did not change the range.
  std::uint64_t samples_total;
  Slice update;
  /// Bulk-synchronous jobs only. True: the push holds no update, but says that the worker has
  /// joined and takes part in all rounds after `step`.
  bool is_join = false;
  /// The epoch since which the range has the owners that the worker knows (Ownership::owner_epoch).
  /// An owner that knows another epoch refuses the push.
  Epoch owner_epoch = 0;

  static constexpr std::string_view name = "push";
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.incarnation, m.range, m.step, m.samples, m.samples_total, m.update,
                    m.is_join, m.owner_epoch);
  }
};

/// Owner to worker: the owner has applied the push, or has queued it for a bulk-synchronous round.
/// In replicated jobs, all owners of the range have done so.
struct Ack {
  RangeId range;
  Step step;
  /// Both are copied from the push: the worker ignores an Ack for a former incarnation or from
  /// former owners.
  Incarnation incarnation = 0;
  Epoch owner_epoch = 0;

  static constexpr std::string_view name = "ack";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.step, m.incarnation, m.owner_epoch);
  }
};

/// A worker of a bulk-synchronous job. Each round after `after_round` awaits a push of this worker.
struct AwaitedWorker {
  MemberId worker = 0;
  Incarnation incarnation = 0;
  Step after_round = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.incarnation, m.after_round); }
  bool operator==(const AwaitedWorker&) const = default;
};

/// All that an owner knows about one range, so that another owner can continue from it.
struct OwnerState {
  RangeState state;
  /// Bulk-synchronous jobs only: the pushes that wait for their round, each worker's in order of
  /// steps.
  std::vector<Push> queued_pushes = {};
  /// Bulk-synchronous jobs only: the workers that rounds await. Absent: rounds await all workers of
  /// the job, from the first round on.
  std::optional<std::vector<AwaitedWorker>> awaited = std::nullopt;

  static constexpr auto fields(auto& m) { return std::tie(m.state, m.queued_pushes, m.awaited); }
};

/// Primary to the other owners: the state with which `owner_epoch` begins.
struct Install {
  Epoch owner_epoch;
  std::shared_ptr<const OwnerState> state;

  [[nodiscard]] bool is_well_formed() const { return state != nullptr; }
  static constexpr std::string_view name = "install";
  static constexpr auto fields(auto& m) { return std::tie(m.owner_epoch, m.state); }
};
/// Primary to the other owners: the next push that it has accepted, or in bulk-synchronous jobs the
/// end of a worker. `number` counts from 1 within the owner epoch.
struct Forward {
  RangeId range;
  Epoch owner_epoch;
  std::uint64_t number;
  /// nullptr if a worker has ended.
  std::shared_ptr<const Push> push;
  /// The worker that has ended, if `push` is nullptr.
  MemberId ended = 0;
  /// The number of workers from which the primary has computed the weight of the push
  /// (Applier::weight()). The receiver may know another number of workers, but must use this one,
  /// so that its replica stays equal to the primary's.
  std::uint32_t workers = 0;

  static constexpr std::string_view name = "forward";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.owner_epoch, m.number, m.push, m.ended, m.workers);
  }
};
/// Owner to the primary: the sender holds the state of Install and all Forwards of this owner epoch
/// up to and including `number`.
struct Held {
  RangeId range;
  Epoch owner_epoch;
  std::uint64_t number;

  static constexpr std::string_view name = "held";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.owner_epoch, m.number); }
};

using OwnershipMessages = TypeList<Pull, Value, Push, Ack, Install, Forward, Held>;
using OwnershipContext = ExchangeContext<Concat<OwnershipMessages, TypeList<Ended>>>;

}  // namespace starling::core
