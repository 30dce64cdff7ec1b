#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"

#include <cmath>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

collective::Network assumed_sum_network() {
  return {.latency_s = 50e-6, .bytes_per_second = 1.25e9};
}

collective::Plan fastest_sum(std::size_t workers, double bytes) {
  const collective::Task task{.members = workers, .bytes = bytes};
  const collective::Network network = assumed_sum_network();
  constexpr std::size_t all_compared_max = 64;
  if (workers <= all_compared_max) {
    auto plans = collective::make_plans(task, network);
    STARLING_CHECK(plans.ok());
    return std::move(plans->front());
  }
  auto fastest = collective::make_plan(collective::BinomialTree{}, task, network).value();
  const auto compare = [&](const collective::Algorithm& algorithm) {
    auto plan = collective::make_plan(algorithm, task, network).value();
    if (plan.cost.seconds < fastest.cost.seconds) fastest = std::move(plan);
  };
  compare(collective::DoubleTree{});
  // Halving has a message for each pair of workers, so its schedule is made only if it is faster by
  // more than a hundredth.
  const double n = static_cast<double>(workers);
  const double halving = 2 * std::floor(std::log2(n)) * network.latency_s +
                         2 * (n - 1) / n * bytes / network.bytes_per_second;
  if (halving < 0.99 * fastest.cost.seconds) compare(collective::Halving{});
  return fastest;
}

}  // namespace starling::core
