#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

collective::Network assumed_sum_network() {
  return {.latency_s = 50e-6, .bytes_per_second = 1.25e9};
}

namespace {

/// A worker's time to encode, send and decode a message, beside the latency. Without it, a round of
/// many short messages would seem as fast as a round of one: by `starling bench collectives`, 4
/// processes on 2 processors sum 1 kB in 0.32 ms by `parts`, and in 0.20 ms by `doubling`.
constexpr double message_s = 20e-6;

/// Returns the time of a sum, rounded to whole picoseconds, because sums of the same terms in
/// another order may differ in their last digits, and all workers must choose the same plan.
double seconds_of(const collective::Plan& plan, std::size_t workers) {
  const double seconds = plan.cost.seconds + message_s * static_cast<double>(plan.cost.messages) /
                                                 static_cast<double>(workers);
  return std::round(1e12 * seconds) * 1e-12;
}

}  // namespace

collective::Plan fastest_sum(std::size_t workers, double bytes, bool rounds_to_bf16) {
  const collective::Request request{.members = workers, .bytes = bytes};
  const collective::Network network = assumed_sum_network();
  constexpr std::size_t all_compared_max = 64;
  if (workers <= all_compared_max) {
    auto plans = collective::make_plans(request, network);
    STARLING_CHECK(plans.ok());
    if (rounds_to_bf16)
      std::erase_if(*plans, [](const collective::Plan& plan) {
        return std::holds_alternative<collective::Doubling>(plan.algorithm);
      });
    return std::move(*std::ranges::min_element(
        *plans, {}, [&](const collective::Plan& plan) { return seconds_of(plan, workers); }));
  }
  auto fastest = collective::make_plan(collective::BinomialTree{}, request, network).value();
  const auto compare = [&](const collective::Algorithm& algorithm) {
    auto plan = collective::make_plan(algorithm, request, network).value();
    if (seconds_of(plan, workers) < seconds_of(fastest, workers)) fastest = std::move(plan);
  };
  compare(collective::DoubleTree{});
  if (!rounds_to_bf16) compare(collective::Doubling{});
  // The schedule of halving has so many messages that it takes long to make. It is made only if
  // this estimate is faster by more than 1 %.
  const double n = static_cast<double>(workers);
  const double halving = 2 * std::floor(std::log2(n)) * (network.latency_s + message_s) +
                         2 * (n - 1) / n * bytes / network.bytes_per_second;
  if (halving < 0.99 * seconds_of(fastest, workers)) compare(collective::Halving{});
  return fastest;
}

}  // namespace starling::core
