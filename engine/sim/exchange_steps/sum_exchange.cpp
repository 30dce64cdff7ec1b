#include "starling/engine/sim/exchange_steps/sum_exchange.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "starling/base/to_duration.hpp"
#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"
#include "starling/engine/exchange/average/average.hpp"
#include "starling/engine/sim/early_parts.hpp"

namespace starling::sim {
namespace {

double in_ns(Time time) { return static_cast<double>(time.count()); }

/// Returns the algorithm that workers choose themselves. For more workers than live jobs may have,
/// returns the one of collective::common_algorithms() that takes the least time if all workers take
/// part at once.
collective::Algorithm choose_algorithm(std::size_t workers, double bytes) {
  if (workers <= core::allreduce_workers_max) return core::fastest_sum(workers, bytes).algorithm;
  std::vector<std::pair<double, collective::Algorithm>> candidates;
  for (const collective::Algorithm& algorithm : collective::common_algorithms(workers)) {
    std::vector<double> times(workers);
    SumClock{algorithm, workers, bytes, core::assumed_sum_network()}.run(times);
    candidates.emplace_back(std::ranges::max(times), algorithm);
  }
  return std::ranges::min_element(candidates, {}, [](const auto& one) { return one.first; })
      ->second;
}

SumClock make_clock(const ExchangeStepOptions& options, const SumSettings& settings,
                    std::size_t workers) {
  const collective::Network network{
      .latency_s = options.latency.mean(),
      .bytes_per_second = options.bytes_per_second > 0 ? options.bytes_per_second
                                                       : std::numeric_limits<double>::infinity()};
  const double bytes = options.bytes / static_cast<double>(settings.buckets);
  if (settings.shards_optimizer) return SumClock::of_shards(workers, bytes, network);
  return SumClock{settings.algorithm, workers, bytes, network};
}

}  // namespace

Result<SumSettings> parse_sum(const ExchangeStepOptions& options, std::size_t workers) {
  SumSettings settings;
  std::string algorithm;
  if (options.name.starts_with(core::AverageExchange::name)) {
    settings.every = core::average_every(core::exchange_argument(options.name));
  } else {
    auto allreduce = core::parse_allreduce(options.name);
    if (!allreduce) return std::move(allreduce).error();
    settings.overlaps = allreduce->overlaps;
    settings.buckets = std::max<std::size_t>(1, allreduce->buckets);
    settings.shards_optimizer = allreduce->shards_optimizer();
    algorithm = allreduce->algorithm;
  }
  const double bytes = options.bytes / static_cast<double>(settings.buckets);
  settings.algorithm = algorithm.empty() ? choose_algorithm(workers, bytes)
                                         : collective::parse_algorithm(algorithm).value();
  if (auto fits = check_algorithm(settings.algorithm, workers); !fits)
    return std::move(fits).error().within("exchange " + options.name);
  return settings;
}

SumExchange::SumExchange(const ExchangeStepOptions& options, const SumSettings& settings,
                         std::size_t workers)
    : settings_(settings),
      clock_(make_clock(options, settings, workers)),
      begin_(workers),
      finished_(workers),
      computes_from_(settings.buckets > 1 ? workers : 0),
      takes_part_(workers),
      ahead_(workers) {}

bool SumExchange::read(MemberId worker, Step, Time now) {
  if (!computes_from_.empty()) computes_from_[worker] = in_ns(now);
  return true;
}

bool SumExchange::write(MemberId worker, Step step, Time now) {
  if (step % settings_.every > 0) return true;
  if (settings_.overlaps) return write_overlapped(worker, now);
  take_part(worker, in_ns(now));
  if (taking_part_ < begin_.size()) return false;
  finish_sum();
  for (MemberId one = 0; one < begin_.size(); ++one) wake_at(one, finished_[one], now);
  return false;
}

/// The update counts as soon as the worker takes part in a sum with it. The worker takes part when
/// it has the result of the sum before.
bool SumExchange::write_overlapped(MemberId worker, Time now) {
  if (takes_part_[worker]) {
    ahead_[worker] = in_ns(now);
    return false;
  }
  const double begin = std::max(in_ns(now), finished_[worker]);
  take_part(worker, begin);
  if (begin > in_ns(now)) wake_at(worker, begin, now);
  if (taking_part_ == begin_.size()) {
    finish_sum();
    for (MemberId one = 0; one < begin_.size(); ++one) {
      if (!ahead_[one]) continue;
      const double next = std::max(*std::exchange(ahead_[one], std::nullopt), finished_[one]);
      take_part(one, next);
      wake_at(one, next, now);
    }
  }
  return begin <= in_ns(now);
}

void SumExchange::take_part(MemberId worker, double at) {
  begin_[worker] = at;
  takes_part_[worker] = true;
  ++taking_part_;
}

void SumExchange::finish_sum() {
  const double last = std::ranges::max(begin_);
  if (settings_.buckets > 1) {
    run_buckets();
  } else {
    finished_ = begin_;
    clock_.run(finished_);
  }
  ++sums_;
  longest_ns_ = std::max(longest_ns_, std::ranges::max(finished_) - last);
  taking_part_ = 0;
  takes_part_.assign(takes_part_.size(), false);
}

/// A worker takes part in the sum of a bucket once it has computed the bucket's parts and has the
/// sum before.
void SumExchange::run_buckets() {
  for (std::size_t bucket = 1; bucket <= settings_.buckets; ++bucket) {
    const double share =
        share_of_time(static_cast<double>(bucket) / static_cast<double>(settings_.buckets));
    for (std::size_t i = 0; i < begin_.size(); ++i)
      finished_[i] =
          std::max(finished_[i], computes_from_[i] + share * (begin_[i] - computes_from_[i]));
    clock_.run(finished_);
  }
}

void SumExchange::wake_at(MemberId worker, double at, Time now) {
  effects.wakes.push_back({std::max(now, now + to_duration(at - in_ns(now))), worker});
}

ExchangeFigures SumExchange::figures() const {
  const std::uint64_t runs = sums_ * settings_.buckets;
  return {.bytes = static_cast<double>(runs) * clock_.bytes(),
          .messages = runs * clock_.messages(),
          .longest_sum = to_duration(longest_ns_)};
}

}  // namespace starling::sim
