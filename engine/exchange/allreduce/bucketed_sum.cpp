#include "starling/engine/exchange/allreduce/bucketed_sum.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

BucketedSum::BucketedSum(std::vector<Bucket> buckets, std::vector<std::unique_ptr<RoundSum>> sums)
    : buckets_(std::move(buckets)), sums_(std::move(sums)) {
  STARLING_CHECK(!buckets_.empty() && buckets_.size() == sums_.size());
}

template <class Event>
void BucketedSum::run(Sends& out, std::size_t bucket, Event event) {
  const std::size_t before = out.size();
  event(*sums_[bucket], out);
  for (std::size_t i = before; i < out.size(); ++i)
    std::visit([&](auto& message) { message.sum = (message.sum - 1) * sums_.size() + bucket + 1; },
               out[i].second);
}

template <class M>
void BucketedSum::pass(Sends& out, collective::Rank from, M message) {
  if (message.sum == 0) return;
  const auto bucket = static_cast<std::size_t>((message.sum - 1) % sums_.size());
  message.sum = (message.sum - 1) / sums_.size() + 1;
  run(out, bucket, [&](RoundSum& sum, Sends& sends) { sum.on(sends, from, message); });
}

bool BucketedSum::can_start() const {
  if (started_ == sums_.size() || !sums_[started_]->can_start()) return false;
  const auto complete =
      std::count_if(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(started_),
                    [](const auto& sum) { return sum->is_complete(); });
  return started_ - static_cast<std::size_t>(complete) < in_progress_max;
}

void BucketedSum::start(Sends& out, const Update* update, Step steps,
                        const std::vector<RangeValues>& ranges) {
  const std::size_t bucket = started_++;
  run(out, bucket, [&](RoundSum& sum, Sends& sends) { sum.start(sends, update, steps, ranges); });
}

void BucketedSum::on(Sends& out, collective::Rank from, const SumPiece& piece) {
  pass(out, from, piece);
}

void BucketedSum::on(Sends& out, collective::Rank from, const SumAck& ack) { pass(out, from, ack); }

bool BucketedSum::is_complete() const {
  return started_ == sums_.size() &&
         std::ranges::all_of(sums_, [](const auto& sum) { return sum->is_complete(); });
}

/// All buckets have the same contributions.
std::vector<std::optional<Contribution>> BucketedSum::contributions() const {
  return sums_.front()->contributions();
}

void BucketedSum::apply(std::vector<RangeValues>& ranges) {
  for (const auto& sum : sums_) sum->apply(ranges);
  started_ = 0;
}

const RangeValues* BucketedSum::applied(RangeId range) const {
  const auto bucket = std::ranges::find_if(
      buckets_, [&](const Bucket& candidate) { return candidate.contains(range); });
  return sums_[static_cast<std::size_t>(bucket - buckets_.begin())]->applied(range);
}

std::optional<ShardState> BucketedSum::shard_state() const {
  if (started_ < sums_.size()) return std::nullopt;
  ShardState all;
  for (const auto& sum : sums_) {
    auto state = sum->shard_state();
    if (!state) return std::nullopt;
    all.merge(*state);
  }
  return all;
}

}  // namespace starling::core
