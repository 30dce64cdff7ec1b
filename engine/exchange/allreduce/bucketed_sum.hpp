/// Sums in buckets: each bucket is summed separately, so that its sum can begin while the worker
/// still computes the parts of the buckets after it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/buckets.hpp"

namespace starling::core {

/// All workers start the buckets of a sum in the same order. In messages, the n-th sum of
/// bucket b has the number (n - 1) * buckets + b + 1.
class BucketedSum final : public RoundSum {
 public:
  /// At most this many buckets are in progress at a time, so that the first ones are complete early
  /// and the messages in flight stay few. With 2, the links are busy while a bucket ends.
  static constexpr std::size_t in_progress_max = 2;

  /// Requires: a sum for each bucket, and no bucket is empty.
  BucketedSum(std::vector<Bucket> buckets, std::vector<std::unique_ptr<RoundSum>> sums);

  [[nodiscard]] bool can_start() const override;
  [[nodiscard]] Bucket next_bucket() const override { return buckets_[started_]; }
  void start(Sends& out, const Update* update, Step steps,
             const std::vector<RangeValues>& ranges) override;
  void on(Sends& out, collective::Rank from, const SumPiece& piece) override;
  void on(Sends& out, collective::Rank from, const SumAck& ack) override;
  [[nodiscard]] bool is_complete() const override;
  [[nodiscard]] std::vector<std::optional<Contribution>> contributions() const override;
  void apply(std::vector<RangeValues>& ranges) override;
  [[nodiscard]] const RangeValues* applied(RangeId range) const override;
  [[nodiscard]] std::optional<ShardState> shard_state() const override;

 private:
  /// Calls `event(sum, out)` for the sum of a bucket, and numbers its messages.
  template <class Event>
  void run(Sends& out, std::size_t bucket, Event event);
  /// Passes a message to the sum of its bucket, with that sum's number.
  template <class M>
  void pass(Sends& out, collective::Rank from, M message);

  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<RoundSum>> sums_;
  /// How many buckets of the sum in progress are started.
  std::size_t started_ = 0;
};

}  // namespace starling::core
