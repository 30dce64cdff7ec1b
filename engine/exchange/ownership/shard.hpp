/// The ranges of one owner: applies each update exactly once and answers reads. In the comments,
/// "bsp only" marks functions and fields for bulk-synchronous jobs. In these jobs, round k of a
/// range consists of step k of each worker that the round awaits; a push waits in a queue until its
/// round is complete.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "starling/engine/exchange/applier.hpp"
#include "starling/engine/exchange/ownership/messages.hpp"

namespace starling::core {

/// The outcome of a push.
enum class PushResult {
  /// The shard ignores the push, and sends no Ack.
  refused,
  /// The shard has accepted the push before.
  duplicate,
  /// The shard has applied the push, or has queued it for its round.
  accepted,
};

/// One call at a time; not thread-safe. Repeated pushes do no harm: for each range, a ledger keeps
/// the last step of each worker's incarnation, and only a push of a later step is applied.
class Shard {
 public:
  /// The options' `initial_states` play no part: put_range() adds ranges.
  explicit Shard(ExchangeOptions options);

  void on(const OwnershipContext& context, const Pull& pull);
  void on(const OwnershipContext& context, const Snapshot& request);

  /// Applies the push, with the weight for this number of workers (Applier::weight()), or queues it
  /// for its round. Sends no Ack.
  [[nodiscard]] PushResult accept(const OwnershipContext& context, const Push& push,
                                  std::size_t workers);

  /// bsp only: from now on rounds of the range await only incarnations for which `is_member` is
  /// true, and are completed without the others. Requires: holds(range).
  void await_only(const OwnershipContext& context, RangeId range,
                  const std::function<bool(MemberId, Incarnation)>& is_member);
  /// Records that `worker` has made its last step: under bsp, rounds of the range do not await the
  /// worker any more. Returns false if they did not await it before. Requires: holds(range).
  bool on_worker_ended(const OwnershipContext& context, RangeId range, MemberId worker);
  /// bsp only: returns the pushes that wait for their round, by worker. Requires: holds(range).
  [[nodiscard]] const std::vector<std::vector<Push>>& queued_pushes(RangeId range) const {
    return held_[index_of_[range]].queued_pushes;
  }

  /// Returns the highest entry of each worker in the ledgers of all ranges, with the pushes that
  /// wait for their round.
  [[nodiscard]] std::vector<WorkerProgress> progress() const;

  /// Returns the whole state of a range for another owner, with the pushes that wait for their
  /// round. Requires: holds(range).
  [[nodiscard]] OwnerState full_state(RangeId range) const;
  /// Adds a range with its state; if the state has no slots, the slots start as zeros. If this
  /// shard holds the range already, replaces its state, and drops the pulls that wait for a round
  /// of it. Requires: fits(state).
  void put_range(const OwnerState& state);
  /// Returns the current state of a range, without pushes that wait for their round. Requires:
  /// holds(range).
  [[nodiscard]] RangeState state(RangeId range) const {
    return make_state(range, held_[index_of_[range]], 0);
  }
  /// Drops a range and its state.
  void release(RangeId range);
  [[nodiscard]] bool holds(RangeId range) const {
    return range < index_of_.size() && index_of_[range] != UINT32_MAX;
  }
  /// Returns the range's elements. Requires: holds(range), and T is the type of the elements.
  template <class T>
  [[nodiscard]] std::span<const T> value(RangeId range) const {
    return std::as_const(*held_[index_of_[range]].values.value).template as<T>();
  }
  /// Returns the range's ledger, by worker. Requires: holds(range).
  [[nodiscard]] const std::vector<LedgerEntry>& ledger(RangeId range) const {
    return held_[index_of_[range]].ledger;
  }
  /// Returns the number of updates applied to the range. Requires: holds(range).
  [[nodiscard]] std::uint64_t updates(RangeId range) const {
    return held_[index_of_[range]].values.updates;
  }

  /// Returns false for messages that no correct worker sends: they name ranges that this owner does
  /// not hold, or rows or elements that do not exist. on() and accept() drop such messages.
  [[nodiscard]] bool is_valid(const Pull& pull) const;
  [[nodiscard]] bool is_valid(const Push& push) const;
  /// Returns false for states that no correct owner hands over.
  [[nodiscard]] bool fits(const OwnerState& state) const;

  /// Returns the current values of the elements that `pull` names, without waiting for a round.
  /// Requires: is_valid(pull).
  [[nodiscard]] Value read(const Pull& pull) { return value_of(pull, held(pull.range)); }

 private:
  struct HeldRange {
    RangeValues values;
    /// bsp only: the number of rounds that `values` contains.
    Step round = 0;
    std::vector<LedgerEntry> ledger;
    /// bsp only, by worker: the pushes that wait for their round.
    std::vector<std::vector<Push>> queued_pushes;
    /// bsp only: how many of the workers that the next round awaits have not pushed to it yet.
    std::size_t missing_pushes = 0;
    /// bsp only, by worker: the incarnation whose pushes rounds await, and after which round;
    /// absent if rounds do not await the worker.
    std::vector<std::optional<AwaitedWorker>> awaited = {};
    /// bsp only: pulls that wait for a round, at most one from each worker.
    std::vector<Pull> waiting_pulls;
  };

  HeldRange& held(RangeId range);
  [[nodiscard]] bool holds_rows(RangeId range, const Rows& rows) const;
  [[nodiscard]] Value value_of(const Pull& pull, const HeldRange& range) const;
  void send_value(const OwnershipContext& context, const Pull& pull, const HeldRange& range) const;
  void apply_or_queue(const OwnershipContext& context, const Push& push, HeldRange& range,
                      std::size_t workers);
  void count_samples(const Push& push, HeldRange& range);
  void queue_push(const OwnershipContext& context, const Push& push, HeldRange& range);
  void complete_rounds(const OwnershipContext& context, RangeId id, HeldRange& range);
  void apply_round(RangeId id, HeldRange& range);
  [[nodiscard]] RangeState make_state(RangeId id, const HeldRange& range,
                                      std::uint64_t request_id) const;
  [[nodiscard]] static std::size_t count_missing(const HeldRange& range);
  [[nodiscard]] static bool is_awaited(const HeldRange& range, MemberId worker);
  PushResult add_joiner(const OwnershipContext& context, const Push& push, HeldRange& range);

  ExchangeOptions options_;
  /// bsp only: the last Snapshot with a round. The shard answers when a range completes this round.
  Snapshot pending_snapshot_;
  /// By range: its index in held_ and ranges_, or UINT32_MAX if this owner does not hold it.
  std::vector<std::uint32_t> index_of_;
  std::vector<RangeId> ranges_;
  std::vector<HeldRange> held_;
  RoundScratch round_scratch_;
};

}  // namespace starling::core
