/// The sums of the exchanges with rounds: the workers of one configuration add up their updates,
/// one round after another, by a collective (exchange/collective).
///
/// The vector that is summed holds, in this order:
///   for each range, the elements of the update, each times the weight of the update, and for each
///     row of the range, or for the whole range, 1 if the update changes it;
///   for each worker, the numbers of steps and samples of its update.
/// So the sum itself tells all workers whose updates it contains.
///
/// With OptimizerShards, the workers that have the state of a range apply its sum, and all others
/// get the new values in place of the sum. Each range is then followed by the numbers of steps and
/// samples of all workers.
///
/// With a SumResidual, a worker rounds the elements of each piece to bfloat16 before it sends them,
/// except the new values of OptimizerShards, which keep all their bits. It adds the rounding errors
/// of a round to its vector of the next round. A round's sum and all residuals after it add up to
/// the vectors and residuals before it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/update.hpp"
#include "starling/engine/exchange/allreduce/messages.hpp"
#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"
#include "starling/engine/exchange/applier.hpp"
#include "starling/engine/exchange/buckets.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::core {

/// A job that sums has at most this many workers.
inline constexpr std::size_t allreduce_workers_max = collective::members_max;
/// An update is of at most this many steps, so that 32 bits hold the number of its samples if
/// batches have less than 65,536 samples.
inline constexpr Step sum_steps_max = Step{1} << 16U;

/// The rounding errors of a worker's elements, until a round contains them. It outlives the sums
/// of one configuration.
struct SumResidual {
  /// The errors of completed rounds, at SumOffsets::errors; empty if there are none.
  std::vector<float> errors;
  /// The errors of the round in progress; empty if there is none.
  std::vector<float> pending;

  /// Call it when the round in progress is complete.
  void commit() {
    if (!pending.empty()) errors = std::exchange(pending, {});
  }
};

struct RoundSumOptions {
  std::shared_ptr<const Layout> layout;
  ApplierPtr applier;
  /// As collective::parse_algorithm() reads it. If it is empty, or names an algorithm that cannot
  /// have this number of workers, the algorithm is the one that takes the least time for the size
  /// of the vector and the number of workers.
  std::string algorithm{};
  /// Each bucket is summed separately, in this order; at least two. Empty: all ranges are summed
  /// together.
  std::vector<Bucket> buckets{};
  /// ExchangeOptions::window.
  std::size_t window = 64;
  Epoch epoch = 0;
  /// The number of workers, and this one's position among them.
  std::size_t workers = 1;
  collective::Rank self = 0;
  /// nullptr: elements are sent with all their bits. If it is set, they must be floats.
  std::shared_ptr<SumResidual> residual = nullptr;
  /// Where the state of the optimizer is; nullptr: each worker has all of it. `algorithm` has no
  /// effect with shards.
  std::shared_ptr<const OptimizerShards> shards = nullptr;
};

/// The state of the optimizer of some ranges (RangeValues::slots).
using ShardState = std::map<RangeId, std::shared_ptr<Buffer>>;

/// The numbers of steps and samples from which a worker's update in a sum was computed.
struct Contribution {
  Step steps = 0;
  std::uint32_t samples = 0;
};

/// One worker's part in the sums of one configuration. All workers make the same sums in the same
/// order. One call at a time; not thread-safe.
class RoundSum {
 public:
  using Message = std::variant<SumPiece, SumAck>;
  /// Messages, each with the position of the worker to which it goes.
  using Sends = std::vector<std::pair<collective::Rank, Message>>;

  virtual ~RoundSum() = default;

  /// True if start() can start the next sum, or the next bucket of the sum: the sum before is
  /// complete, and not too many are in progress.
  [[nodiscard]] virtual bool can_start() const = 0;
  /// Returns the bucket that start() will sum. Requires: can_start().
  [[nodiscard]] virtual Bucket next_bucket() const = 0;
  /// Starts the next sum, or the next bucket of the sum. `update` is this worker's update, which is
  /// of `steps` steps; nullptr if it has none. The update needs only the parts of the bucket.
  /// `ranges` are the values to which the sum will be applied. Requires: can_start(); if there is
  /// an update, 1 <= steps <= sum_steps_max; all buckets of a sum are started with the same numbers
  /// of steps and samples.
  virtual void start(Sends& out, const Update* update, Step steps,
                     const std::vector<RangeValues>& ranges) = 0;
  /// Takes a message from the worker at a position; ignores those that no correct worker sends.
  virtual void on(Sends& out, collective::Rank from, const SumPiece& piece) = 0;
  virtual void on(Sends& out, collective::Rank from, const SumAck& ack) = 0;

  /// True if the sum that was started last is complete in all buckets, and apply() has not taken it
  /// yet.
  [[nodiscard]] virtual bool is_complete() const = 0;
  /// Returns for each worker its contribution; nullopt if the sum has no update of it. Requires:
  /// is_complete().
  [[nodiscard]] virtual std::vector<std::optional<Contribution>> contributions() const = 0;
  /// Applies the sum to the ranges, and takes it. Requires: is_complete().
  virtual void apply(std::vector<RangeValues>& ranges) = 0;
  /// Returns the values of a range of this worker's shards after the sum in progress; nullptr if
  /// this worker does not know them, or if there are no shards.
  [[nodiscard]] virtual const RangeValues* applied(RangeId) const { return nullptr; }
  /// Returns the state of this worker's shards after the sum in progress; nullopt unless this
  /// worker knows all of it. If any worker has completed the sum, each worker knows all of the
  /// state of its shards.
  [[nodiscard]] virtual std::optional<ShardState> shard_state() const { return std::nullopt; }
};

/// How a sum is cut, so that its pieces are small, and few of them are in flight.
struct SumSlices {
  /// The number of slices of each chunk. A slice has at most range_bytes_max bytes.
  std::uint32_t slices = 1;
  /// collective::ExecutorOptions::window.
  std::uint32_t slice_window = 1;
};
/// Cuts a vector of `bytes` bytes. `window` is ExchangeOptions::window.
[[nodiscard]] SumSlices cut_sum(const collective::Schedule& schedule, double bytes,
                                std::size_t window);

/// Returns the part of one worker in the sums. Requires: 1 <= workers <= allreduce_workers_max,
/// self < workers.
[[nodiscard]] std::unique_ptr<RoundSum> make_round_sum(const RoundSumOptions& options);

}  // namespace starling::core
