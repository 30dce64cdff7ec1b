/// The ranges of one owner: applies each update exactly once and answers reads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "starling/engine/core/effect.hpp"
#include "starling/engine/exchange/ownership/layout.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"

namespace starling::core {

/// Updates are gradients, applied by an optimiser.
///
/// A push of n samples is applied with rate lr * schedule * n / (workers * batch). In
/// bulk-synchronous jobs, the sample-weighted mean of a round is applied once with rate lr *
/// schedule.
struct GradientApplier {
  models::Optimizer optimizer;
  models::Schedule schedule;
  double l2 = 0;
  /// The number of samples in a worker's full batch.
  std::size_t batch = 1;
};

/// Says to which elements of which parameter a piece of an update belongs.
struct MergeTarget {
  /// The index of the parameter.
  std::size_t parameter;
  /// The index of the piece's first element in the parameter.
  std::size_t offset;
};

/// A function that merges `update` into `value`, element by element or row by row. It is called
/// once for each run of consecutive elements, and must not throw.
template <class T>
using Merge =
    std::function<void(const MergeTarget& site, std::span<T> value, std::span<const T> update)>;

template <class T>
using Applier = std::variant<GradientApplier, Merge<T>>;

template <class T>
struct ShardOptions {
  std::shared_ptr<const Layout> layout;
  /// The states of the ranges that this owner holds at first. If a state has no slots, its slots
  /// are zeros.
  std::vector<RangeState> ranges;
  Applier<T> applier;
  std::size_t workers = 1;
  /// Worker ids are below this. 0: they are below `workers`, because no worker joins later.
  std::size_t workers_max = 0;
  /// True if the pushes of a step are gathered and applied together, in the order of the workers.
  bool bsp = false;
  /// bsp only: a Snapshot of a later round, which the shard answers as if it had received it at the
  /// start.
  Snapshot pending_snapshot = {.request_id = 0};
};

/// Returns the ledger entry from which a worker continues: its last step whose update every range
/// holds.
[[nodiscard]] LedgerEntry first_ledger_entry(const std::vector<RangeState>& start, MemberId worker);

/// The outcome of a push.
enum class PushResult {
  /// The push is ignored and not answered.
  refused,
  /// It was taken before.
  known,
  /// It is applied, or gathered into its round.
  taken,
};

/// One call at a time; not thread-safe. Pushes may be repeated without harm: the last step of each
/// (worker, incarnation) is kept for each range, and steps only rise.
template <class T>
class Shard {
 public:
  explicit Shard(ShardOptions<T> options);

  void on(const Context& context, const Pull& pull);
  void on(const Context& context, const Push& push);
  void on(const Context& context, const Ended& ended);
  void on(const Context& context, const Snapshot& request);
  /// `worker` has died or left: completes rounds without it.
  void on_left(const Context& context, MemberId worker);

  /// Does the same as on(push), but does not send the Ack.
  [[nodiscard]] PushResult take(const Context& context, const Push& push);

  /// bsp only: from now on awaits only pushes of incarnations for which `is_member` is true, and
  /// completes rounds without the others. Requires: holds(range).
  void await_only(const Context& context, RangeId range,
                  const std::function<bool(MemberId, Incarnation)>& is_member);
  /// bsp only: `worker` has made its last step, so completes rounds without it. Returns false if it
  /// was not awaited.
  bool end(const Context& context, RangeId range, MemberId worker);
  /// bsp only: returns the pushes that wait for their round, by worker. Requires: holds(range).
  [[nodiscard]] const std::vector<std::vector<Push>>& gathered(RangeId range) const {
    return held_[index_of_[range]].gathered;
  }

  /// Returns the highest step of which a range here holds an update of any worker; 0 if there is
  /// none.
  [[nodiscard]] Step highest_step() const;

  /// Returns the whole state of a range for another owner, with the pushes that wait for their
  /// round. Requires: holds(range).
  [[nodiscard]] RangeState hand_over(RangeId range) const;
  /// Adds a range with its state, or replaces the state of a range that it holds and drops the
  /// reads that wait there. Requires: fits(state).
  void put_range(const RangeState& state);
  /// Drops a range and its state.
  void release(RangeId range);
  [[nodiscard]] bool holds(RangeId range) const {
    return range < index_of_.size() && index_of_[range] != UINT32_MAX;
  }
  /// Returns the range's elements. Requires: holds(range), as for updates().
  [[nodiscard]] std::span<const T> value(RangeId range) const {
    return std::as_const(*held_[index_of_[range]].value).template as<T>();
  }
  /// Returns the number of updates applied to the range.
  [[nodiscard]] std::uint64_t updates(RangeId range) const {
    return held_[index_of_[range]].updates;
  }

  /// Returns false for messages that no correct worker sends: they name ranges that this owner does
  /// not hold, or rows or elements that do not exist. Such messages are dropped.
  [[nodiscard]] bool takes(const Pull& pull) const;
  [[nodiscard]] bool takes(const Push& push) const;
  /// Returns false for states that no correct owner hands over.
  [[nodiscard]] bool fits(const RangeState& state) const;

  /// Returns the present values of the elements that a Pull asks for, for readers that are not
  /// workers. Requires: takes(pull).
  [[nodiscard]] Value read(const Pull& pull) { return value_of(pull, held(pull.range)); }

 private:
  struct HeldRange {
    std::shared_ptr<Buffer> value;
    std::shared_ptr<Buffer> slots;
    std::uint64_t updates = 0;
    std::uint64_t samples = 0;
    Step round = 0;
    std::vector<LedgerEntry> ledger;
    /// bsp only, by worker: the pushes that wait for their round.
    std::vector<std::vector<Push>> gathered;
    /// bsp only: how many workers have not pushed to the next round yet.
    std::size_t missing_pushes = 0;
    /// bsp only, by worker: the incarnation whose pushes are awaited, and after which round; absent
    /// if none are.
    std::vector<std::optional<AwaitedWorker>> awaited = {};
    /// bsp only: reads that wait for a round, at most one from each worker.
    std::vector<Pull> waiting_pulls;
  };

  HeldRange& held(RangeId range);
  [[nodiscard]] bool holds_rows(RangeId range, const Rows& rows) const;
  [[nodiscard]] Value value_of(const Pull& pull, const HeldRange& held) const;
  void send_value(const Context& context, const Pull& pull, const HeldRange& held) const;
  void process(const Context& context, const Push& push, HeldRange& held);
  void count_samples(const Push& push, HeldRange& held);
  void queue_push(const Context& context, const Push& push, HeldRange& held);
  void complete_rounds(const Context& context, RangeId range, HeldRange& held);
  void apply_round(RangeId range, HeldRange& held);
  void apply_mean(RangeId range, HeldRange& held, std::span<const Push> round,
                  std::uint64_t samples);
  void apply(RangeId range, HeldRange& held, const Slice& update, double weight);
  void apply_piece(RangeId range, HeldRange& held, std::size_t from, std::span<const T> update,
                   double weight);
  [[nodiscard]] RangeState make_state(RangeId range, const HeldRange& held,
                                      std::uint64_t request_id) const;
  [[nodiscard]] static std::size_t count_missing(const HeldRange& held);
  [[nodiscard]] static bool is_awaited(const HeldRange& held, MemberId worker);
  PushResult add_joiner(const Context& context, const Push& push, HeldRange& held);
  void end_in_all_ranges(const Context& context, MemberId worker);

  ShardOptions<T> options_;
  /// bsp only: the last Snapshot of a later round.
  Snapshot pending_snapshot_;
  /// By range: its index in held_ and ranges_, or UINT32_MAX if this owner does not hold it.
  std::vector<std::uint32_t> index_of_;
  std::vector<RangeId> ranges_;
  std::vector<HeldRange> held_;
  /// Memory that apply_mean() reuses.
  std::vector<T> mean_;
  std::vector<bool> touched_;
};

extern template class Shard<float>;
extern template class Shard<double>;

}  // namespace starling::core
