/// An owner of ranges: applies updates exactly once and answers reads.
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
/// A push of n samples is applied with rate lr * schedule * n / (workers * batch); in
/// bulk-synchronous jobs the sample-weighted mean of a round is applied once with rate lr *
/// schedule.
struct GradientApplier {
  models::Optimizer optimizer;
  models::Schedule schedule;
  double l2 = 0;
  /// Samples that a worker's full batch holds.
  std::size_t batch = 1;
};

/// The place in a parameter where a piece of an update belongs.
struct MergeSite {
  /// Position of the parameter.
  std::size_t parameter;
  /// First element, counted from the parameter's first.
  std::size_t offset;
};

/// Updates are merged by a function: `value` becomes `value` merged with `update`, element by
/// element or row by row. Called once for each consecutive piece; must not throw.
template <class T>
using Merge =
    std::function<void(const MergeSite& site, std::span<T> value, std::span<const T> update)>;

template <class T>
using Applier = std::variant<GradientApplier, Merge<T>>;

template <class T>
struct ShardOptions {
  std::shared_ptr<const Layout> layout;
  /// The ranges that this owner holds, with their content; a state without slots starts with zeros.
  std::vector<RangeState> ranges;
  Applier<T> applier;
  std::size_t workers = 1;
  /// Worker ids are below this, in jobs where workers come and go; 0: below `workers`.
  std::size_t workers_max = 0;
  /// True where the pushes of a step are gathered and applied together, in worker order.
  bool bsp = false;
  /// bsp only: a Snapshot of a round to come, as if it had been requested before the first round.
  Snapshot due = {.ticket = 0};
};

/// Returns the entry from which a worker goes on: the last step whose update every range holds.
[[nodiscard]] LedgerEntry first_entry(const std::vector<RangeState>& start, MemberId worker);

/// The outcome of a push.
enum class PushResult {
  /// It does not count, and is not answered.
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
  /// `worker` has died: rounds are completed without it.
  void on_left(const Context& context, MemberId worker);

  /// Does the same as on(push), without sending the answer.
  [[nodiscard]] PushResult take(const Context& context, const Push& push);

  /// bsp only: from now on awaits only pushes of the incarnations that `lives` accepts; rounds are
  /// completed without the others. Requires: holds(range).
  void keep_awaiting(const Context& context, RangeId range,
                     const std::function<bool(MemberId, Incarnation)>& lives);
  /// bsp only: `worker` has made its last step. Returns false where it was not awaited.
  bool end(const Context& context, RangeId range, MemberId worker);
  /// bsp only: pushes that wait for their round, by worker. Requires: holds(range).
  [[nodiscard]] const std::vector<std::vector<Push>>& gathered(RangeId range) const {
    return held_[position_[range]].gathered;
  }

  /// The highest step of which some worker's update is held in any range here; 0 where there is
  /// none.
  [[nodiscard]] Step highest_step() const;

  /// Returns the whole state of a range for another owner, with the pushes that wait for their
  /// round. Requires: holds(range).
  [[nodiscard]] RangeState hand_over(RangeId range) const;
  /// Takes a range, in place of a state that was held of it; reads that wait are dropped. Requires:
  /// fits(state).
  void take_in(const RangeState& state);
  void release(RangeId range);
  [[nodiscard]] bool holds(RangeId range) const {
    return range < position_.size() && position_[range] != UINT32_MAX;
  }
  /// The range's elements, and the number of updates applied so far. Requires: holds(range).
  [[nodiscard]] std::span<const T> value(RangeId range) const {
    return std::as_const(*held_[position_[range]].value).template as<T>();
  }
  [[nodiscard]] std::uint64_t updates(RangeId range) const {
    return held_[position_[range]].updates;
  }

  /// Returns false for messages that no worker of the job sends, but another program might: of
  /// ranges held elsewhere, of rows or elements that do not exist. They are dropped.
  [[nodiscard]] bool takes(const Pull& pull) const;
  [[nodiscard]] bool takes(const Push& push) const;
  /// Returns false for states that no owner of the job hands over.
  [[nodiscard]] bool fits(const RangeState& state) const;

  /// Returns the values that a Pull asks for as they are now, for readers that are not workers.
  /// Requires: takes(pull).
  [[nodiscard]] Value read(const Pull& pull) { return value_of(pull, held(pull.range)); }

 private:
  struct Held {
    std::shared_ptr<Buffer> value;
    std::shared_ptr<Buffer> slots;
    std::uint64_t updates = 0;
    std::uint64_t samples = 0;
    Step round = 0;
    std::vector<LedgerEntry> ledger;
    /// bsp only: the pushes that wait for their round, by worker, and how many workers of the next
    /// round have none yet.
    std::vector<std::vector<Push>> gathered;
    std::size_t missing = 0;
    /// bsp only, by worker: whether, in which incarnation and after which round its push is
    /// awaited.
    std::vector<std::optional<Awaited>> awaited = {};
    /// bsp only: reads that wait for a round, at most one a worker.
    std::vector<Pull> parked;
  };

  Held& held(RangeId range);
  [[nodiscard]] bool has(RangeId range, const Rows& rows) const;
  [[nodiscard]] Value value_of(const Pull& pull, const Held& held) const;
  void answer(const Context& context, const Pull& pull, const Held& held) const;
  void accept(const Context& context, const Push& push, Held& held);
  void count(const Push& push, Held& held);
  void gather(const Context& context, const Push& push, Held& held);
  void complete_rounds(const Context& context, RangeId range, Held& held);
  void apply_round(RangeId range, Held& held);
  void apply_mean(RangeId range, Held& held, std::span<const Push> round, std::uint64_t samples);
  void apply(RangeId range, Held& held, const Slice& update, double weight);
  void apply_piece(RangeId range, Held& held, std::size_t from, std::span<const T> update,
                   double weight);
  [[nodiscard]] RangeState state(RangeId range, const Held& held, std::uint64_t ticket) const;
  [[nodiscard]] static std::size_t count_missing(const Held& held);
  [[nodiscard]] static bool takes_part(const Held& held, MemberId worker);
  PushResult enter(const Context& context, const Push& push, Held& held);
  void worker_gone(const Context& context, MemberId worker);

  ShardOptions<T> options_;
  /// bsp only: the last Snapshot that was requested of a round to come.
  Snapshot due_;
  /// Position in held_ by range, or UINT32_MAX.
  std::vector<std::uint32_t> position_;
  std::vector<RangeId> ranges_;
  std::vector<Held> held_;
  std::vector<T> mean_;
  std::vector<bool> touched_;
};

extern template class Shard<float>;
extern template class Shard<double>;

}  // namespace starling::core
