#include "starling/engine/exchange/allreduce/round_sum.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/bucketed_sum.hpp"
#include "starling/engine/exchange/allreduce/sharded_sum.hpp"
#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"
#include "starling/engine/exchange/allreduce/typed_round_sum.hpp"

namespace starling::core {
namespace {

using collective::Rank;

/// A message holds at most this many bytes of the vector.
constexpr std::size_t piece_bytes_max = range_bytes_max;
/// More slices in progress do not make a sum faster.
constexpr std::size_t slices_in_progress_max = 4;

/// Returns the schedule of RoundSumOptions::algorithm; nullopt if that is empty or has no effect,
/// or if the algorithm cannot have this number of workers.
std::optional<collective::Schedule> named_schedule(const RoundSumOptions& options) {
  using collective::Operation;
  if (options.algorithm.empty() || options.shards) return std::nullopt;
  const auto algorithm = collective::parse_algorithm(options.algorithm);
  STARLING_CHECK(algorithm.ok());
  auto schedule =
      collective::make_schedule(*algorithm, Operation::all_reduce, options.workers, Rank{0});
  if (!schedule) return std::nullopt;
  return *std::move(schedule);
}

std::uint32_t slice_window_of(std::size_t chunks, std::size_t window) {
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(window / chunks, 1, slices_in_progress_max));
}

template <class T>
std::unique_ptr<RoundSum> make_sum_of(const RoundSumOptions& options, const Bucket& bucket,
                                      const std::optional<collective::Schedule>& named) {
  const std::size_t at_once =
      std::clamp<std::size_t>(options.buckets.size(), 1, BucketedSum::in_progress_max);
  const std::size_t messages = std::max<std::size_t>(1, options.window / at_once);
  if (options.shards)
    return std::make_unique<ShardedSum<T>>(options, bucket,
                                           slice_window_of(options.workers, messages));
  auto offsets = SumOffsets::in_order(*options.layout, bucket, options.workers);
  const auto bytes = static_cast<double>(offsets.size * sizeof(T));
  const auto schedule =
      named ? *named : fastest_sum(options.workers, bytes, options.residual != nullptr).schedule;
  const auto [slices, window] = cut_sum(schedule, bytes, messages);
  offsets.slices = collective::slice_bounds(schedule.chunks, offsets.size, slices);
  return std::make_unique<TypedRoundSum<T>>(options, std::move(offsets), schedule, window);
}

template <class T>
std::unique_ptr<RoundSum> make_typed_sum(const RoundSumOptions& options) {
  // Made once for all buckets, because packing trees takes long.
  const auto named = named_schedule(options);
  if (options.buckets.empty()) return make_sum_of<T>(options, all_ranges(*options.layout), named);
  std::vector<std::unique_ptr<RoundSum>> sums;
  for (const Bucket& bucket : options.buckets)
    sums.push_back(make_sum_of<T>(options, bucket, named));
  return std::make_unique<BucketedSum>(options.buckets, std::move(sums));
}

}  // namespace

SumSlices cut_sum(const collective::Schedule& schedule, double bytes, std::size_t window) {
  double largest = 0;
  for (const auto& chunk : schedule.chunks) largest = std::max(largest, chunk.share);
  return {.slices = 1 + static_cast<std::uint32_t>(largest * bytes / piece_bytes_max),
          .slice_window = slice_window_of(schedule.chunks.size(), window)};
}

std::unique_ptr<RoundSum> make_round_sum(const RoundSumOptions& options) {
  STARLING_CHECK(options.self < options.workers && options.workers <= allreduce_workers_max);
  if (options.applier->element_bytes() == sizeof(float)) return make_typed_sum<float>(options);
  return make_typed_sum<double>(options);
}

}  // namespace starling::core
