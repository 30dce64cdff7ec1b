/// Asks others for what a worker lacks of the latest round in a new configuration: the model if it
/// joins or is a round behind, and the optimizer's state in its shards (optimizer_shards.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/allreduce/messages.hpp"
#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/applier.hpp"

namespace starling::core {

/// The reports of the other workers of a configuration.
using RoundReports = std::map<MemberId, RoundReport>;

/// One call at a time; not thread-safe.
class CatchUp {
 public:
  struct Missing {
    /// The latest round that any worker has completed.
    Step round = 0;
    /// True if the worker lacks the values after this round.
    bool lacks_values = false;
    /// True if the optimizer's state is in shards, so that the reports say which worker has the
    /// state of which range; false if each worker that has completed the round has all of the
    /// state.
    bool shards_optimizer = false;
  };

  /// Plans which ranges to ask for, and which workers to ask. `lacks_state(range)` is true if the
  /// worker lacks the state of the optimizer of the range. Returns an Error if no worker has what
  /// is lacking. Requires: if the worker lacks values, some report is of `missing.round`.
  [[nodiscard]] static Result<CatchUp> plan(const RoundReports& reports, const Missing& missing,
                                            std::size_t ranges,
                                            const std::function<bool(RangeId)>& lacks_state);

  [[nodiscard]] bool is_complete() const { return missing_ == 0; }
  /// A request, and the worker to which it goes.
  struct Request {
    MemberId source = 0;
    CatchUpRequest request;
  };
  /// Returns the next request; nullopt if all were returned.
  [[nodiscard]] std::optional<Request> next(Epoch epoch);
  /// Takes an answer; ignores one that is not awaited, or does not fit. Returns true if it was
  /// taken.
  bool take(MemberId from, const CatchUpReply& reply, const Layout& layout, const Applier& applier);

  [[nodiscard]] Step round() const { return round_; }
  /// By range: the values after the round, always without the state of the optimizer, which state()
  /// has. Empty if the worker lacks no values.
  [[nodiscard]] std::vector<RangeValues>& values() { return values_; }
  /// By range: the state of the optimizer (RangeValues::slots).
  [[nodiscard]] const ShardState& state() const { return state_; }
  /// The progress of all workers at the end of the round; empty if the worker lacks no values.
  [[nodiscard]] const std::vector<WorkerProgress>& progress() const { return progress_; }

 private:
  /// A request that next() returns: what to ask of `source`. Values and state of one range may come
  /// from two workers.
  struct Part {
    MemberId source = 0;
    RangeId range = 0;
    bool wants_values = false;
    bool wants_state = false;
    bool is_awaited = false;
  };

  Step round_ = 0;
  std::vector<Part> parts_;
  /// How many of parts_ next() has returned, and how many have no answer yet.
  std::size_t asked_ = 0;
  std::size_t missing_ = 0;
  std::vector<RangeValues> values_;
  ShardState state_;
  std::vector<WorkerProgress> progress_;
};

}  // namespace starling::core
