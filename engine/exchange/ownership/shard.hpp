/// The ranges of one owner: applies each update exactly once and answers reads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "starling/engine/core/effect.hpp"
#include "starling/engine/exchange/ownership/applier.hpp"

namespace starling::core {

struct ShardOptions {
  std::shared_ptr<const Layout> layout;
  /// How updates change the ranges. Shared by all owners of a job.
  ApplierPtr applier;
  /// The number of workers with which the job starts.
  std::size_t workers = 1;
  /// Worker ids are below this. 0: they are below `workers`, because no worker joins later.
  std::size_t workers_max = 0;
  /// True in bulk-synchronous jobs: the shard gathers the pushes of a step, and applies them
  /// together in the order of the workers. Fields and functions marked "bsp only" serve these jobs.
  bool bsp = false;
  /// bsp only: a Snapshot of a later round, as if the shard had received it at the start.
  Snapshot pending_snapshot = {.request_id = 0};
};

/// Returns the ledger entry from which a worker continues: the one for the last step of which every
/// range in `start` holds the update.
[[nodiscard]] LedgerEntry first_ledger_entry(const std::vector<RangeState>& start, MemberId worker);

/// The outcome of a push.
enum class PushResult {
  /// The shard ignores the push, and sends no Ack.
  refused,
  /// The shard has accepted the push before.
  duplicate,
  /// The shard has applied the push, or gathered it for its round.
  accepted,
};

/// One call at a time; not thread-safe. Repeated pushes do no harm: for each range, a ledger keeps
/// the last step of each worker's incarnation, and only a push of a later step is applied.
class Shard {
 public:
  explicit Shard(ShardOptions options);

  void on(const Context& context, const Pull& pull);
  void on(const Context& context, const Push& push);
  void on(const Context& context, const Snapshot& request);

  /// Does the same as on(push), but does not send the Ack.
  [[nodiscard]] PushResult accept(const Context& context, const Push& push);

  /// bsp only: from now on rounds of the range await only incarnations for which `is_member` is
  /// true, and are completed without the others. Requires: holds(range).
  void await_only(const Context& context, RangeId range,
                  const std::function<bool(MemberId, Incarnation)>& is_member);
  /// `worker` has made its last step: under bsp, rounds of the range do not await it any more.
  /// Returns false if they did not before. Requires: holds(range).
  bool end_worker(const Context& context, RangeId range, MemberId worker);
  /// bsp only: returns the pushes that wait for their round, by worker. Requires: holds(range).
  [[nodiscard]] const std::vector<std::vector<Push>>& gathered(RangeId range) const {
    return held_[index_of_[range]].gathered;
  }

  /// Returns the highest step in the ledgers of all ranges; 0 if there is none.
  [[nodiscard]] Step highest_step() const;

  /// Returns the whole state of a range for another owner, with the pushes that wait for their
  /// round. Requires: holds(range).
  [[nodiscard]] RangeState full_state(RangeId range) const;
  /// Adds a range with its state; if the state has no slots, the slots start as zeros. If this
  /// shard holds the range already, replaces its state, and drops the pulls that wait for a round
  /// of it. Requires: fits(state).
  void put_range(const RangeState& state);
  /// Drops a range and its state.
  void release(RangeId range);
  [[nodiscard]] bool holds(RangeId range) const {
    return range < index_of_.size() && index_of_[range] != UINT32_MAX;
  }
  /// Returns the range's elements. Requires: holds(range), as for updates(), and that T is the type
  /// of the elements.
  template <class T>
  [[nodiscard]] std::span<const T> value(RangeId range) const {
    return std::as_const(*held_[index_of_[range]].values.value).template as<T>();
  }
  /// Returns the number of updates applied to the range.
  [[nodiscard]] std::uint64_t updates(RangeId range) const {
    return held_[index_of_[range]].values.updates;
  }

  /// Returns false for messages that no correct worker sends: they name ranges that this owner does
  /// not hold, or rows or elements that do not exist. on() drops such messages.
  [[nodiscard]] bool is_valid(const Pull& pull) const;
  [[nodiscard]] bool is_valid(const Push& push) const;
  /// Returns false for states that no correct owner hands over.
  [[nodiscard]] bool fits(const RangeState& state) const;

  /// Returns the present values of the elements that `pull` names, without waiting for a round.
  /// Requires: is_valid(pull).
  [[nodiscard]] Value read(const Pull& pull) { return value_of(pull, held(pull.range)); }

 private:
  struct HeldRange {
    RangeValues values;
    Step round = 0;
    std::vector<LedgerEntry> ledger;
    /// bsp only, by worker: the pushes that wait for their round.
    std::vector<std::vector<Push>> gathered;
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
  void send_value(const Context& context, const Pull& pull, const HeldRange& range) const;
  void process(const Context& context, const Push& push, HeldRange& range);
  void count_samples(const Push& push, HeldRange& range);
  void queue_push(const Context& context, const Push& push, HeldRange& range);
  void complete_rounds(const Context& context, RangeId id, HeldRange& range);
  void apply_round(RangeId id, HeldRange& range);
  [[nodiscard]] RangeState make_state(RangeId id, const HeldRange& range,
                                      std::uint64_t request_id) const;
  [[nodiscard]] static std::size_t count_missing(const HeldRange& range);
  [[nodiscard]] static bool is_awaited(const HeldRange& range, MemberId worker);
  PushResult add_joiner(const Context& context, const Push& push, HeldRange& range);

  ShardOptions options_;
  /// bsp only: the last Snapshot with a round. The shard answers when a range completes this round.
  Snapshot pending_snapshot_;
  /// By range: its index in held_ and ranges_, or UINT32_MAX if this owner does not hold it.
  std::vector<std::uint32_t> index_of_;
  std::vector<RangeId> ranges_;
  std::vector<HeldRange> held_;
  RoundScratch round_scratch_;
};

}  // namespace starling::core
