/// Types and functions for the exchanges in which every worker has a copy of the whole model. The
/// functions read from the worker's own copy, answer observers, and choose the worker from which a
/// joining worker gets its copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/exchange/exchange.hpp"

namespace starling::core {

/// Returns the workers of the configuration other than `self`, ascending.
[[nodiscard]] std::vector<MemberIncarnation> other_workers(const Configuration& configuration,
                                                           MemberId self);
/// Returns the worker with the lowest id, which replies to observers; nullopt if there is none.
[[nodiscard]] std::optional<MemberId> first_worker(const Configuration& configuration);

/// How far a worker has got.
struct WorkerSteps {
  Step step = 0;
  /// The number of samples of the steps up to `step`.
  std::uint64_t samples = 0;
};
/// How far each incarnation of each worker has got, ascending by id and then by incarnation.
using StepsOfWorkers = std::map<MemberIncarnation, WorkerSteps>;

/// Returns the progress of the workers that have made a step, ascending by id and then by
/// incarnation.
[[nodiscard]] std::vector<WorkerProgress> progress_of(const StepsOfWorkers& workers);

/// One range of a worker's copy of the model, as a worker that joins receives it.
struct ModelCopy {
  /// The state's ledger is empty; `progress` has the workers' steps and samples instead.
  RangeState state;
  /// How far each worker has got, as far as the sender knows, ascending by id and then by
  /// incarnation.
  std::vector<WorkerProgress> progress;

  static constexpr auto fields(auto& m) { return std::tie(m.state, m.progress); }
};

/// A hash of a copy of the model after a round, which shows whether two copies differ.
struct CopyHash {
  Step round = 0;
  /// 0 if there is no copy.
  std::uint64_t hash = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.round, m.hash); }
  bool operator==(const CopyHash&) const = default;
};

/// Adds bytes to a hash, which starts at 0. The result is never 0, and the same on all machines.
[[nodiscard]] std::uint64_t add_to_hash(std::uint64_t hash, std::span<const std::byte> bytes);

/// Returns true if the sender of the message is a worker.
[[nodiscard]] bool is_from_worker(const ExchangeScope& scope);
/// Returns true if a correct member may send this progress.
[[nodiscard]] bool has_valid_progress(const ExchangeScope& scope,
                                      const std::vector<WorkerProgress>& workers);
/// Returns true if a correct member may send this copy of the range.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, RangeId range, const ModelCopy& copy);

/// Answers a read from a worker's copies. `values_of(range)` returns the RangeValues of a range.
template <class ValuesOf>
[[nodiscard]] ReadDone read_from(const Layout& layout, const Read& read, ValuesOf values_of) {
  ReadDone done{read.step, {}};
  const auto add = [&](RangeId range, const Rows& rows) {
    done.values.push_back(
        {range, read.step, slice_of(layout.ranges[range], values_of(range), rows)});
  };
  if (read.plan)
    for (const RangeRows& part : *read.plan) add(part.range, part.rows);
  else
    for (RangeId range = 0; range < layout.ranges.size(); ++range) add(range, nullptr);
  return done;
}

/// Returns the state of a copy. Its ledger is `progress`, in at least `workers` entries.
[[nodiscard]] RangeState state_of(RangeId range, const RangeValues& values,
                                  const StepsOfWorkers& progress, std::size_t workers);

/// Answers a Snapshot of the current state (`request.round` is 0) with the states of the ranges for
/// which answers_for() is true. Ignores a Snapshot of a round: an exchange that has rounds answers
/// that itself. `ranges` is the number of ranges of the model.
template <class E, class Context>
void send_states_to_observer(const E& exchange, const Context& context, const Snapshot& request,
                             std::size_t ranges) {
  for (RangeId range = 0; request.round == 0 && range < ranges; ++range) {
    if (!exchange.answers_for(range)) continue;
    RangeState answer = exchange.state(range);
    answer.request_id = request.request_id;
    context.send_to_observer(std::move(answer));
  }
}

/// Returns the ranges of which this member has a copy.
template <class E>
[[nodiscard]] std::vector<RangeId> copied_ranges(const E& exchange, std::size_t ranges) {
  std::vector<RangeId> copied;
  for (RangeId range = 0; range < ranges; ++range)
    if (exchange.has_copy(range)) copied.push_back(range);
  return copied;
}

/// Chooses which worker this worker asks for a copy next: the other workers in turn, ascending by
/// id. If all of them have refused, it begins again after 50 ms; if all still refuse after 20 s,
/// the job fails. If there is no other worker, the job fails at once.
class CopySource {
 public:
  /// The caller must ask this member for a copy, call on_timer() at this time, or fail the job.
  using Next = std::variant<MemberId, SetTimer, Fail>;

  /// Begins with the first of the other workers.
  [[nodiscard]] Next begin(std::span<const MemberIncarnation> others);
  /// The worker that was asked has no copy.
  [[nodiscard]] Next on_refusal(Time now, std::span<const MemberIncarnation> others);
  /// The worker that was asked has sent a copy.
  void on_copy() { nobody_has_it_since_.reset(); }
  /// True if it is time to begin again.
  [[nodiscard]] bool on_timer(Time now);

  /// The worker that was asked last, if any.
  [[nodiscard]] const std::optional<MemberIncarnation>& asked() const { return asked_; }
  /// Call this when no copy is missing any more: asked() is then nullopt, and on_timer() returns
  /// false.
  void end() { asked_.reset(); }

 private:
  [[nodiscard]] Next ask_next(std::span<const MemberIncarnation> others);

  std::optional<MemberIncarnation> asked_;
  /// How many workers have refused since begin().
  std::size_t refusals_ = 0;
  /// The time to ask again, and the time at which, for the first time since the last copy, all
  /// workers had refused.
  std::optional<Time> ask_again_at_;
  std::optional<Time> nobody_has_it_since_;
};

}  // namespace starling::core
