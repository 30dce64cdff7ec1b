#include "starling/models/batch_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

namespace starling::models {

std::vector<double> next_shares(std::span<const WorkDone> workers) {
  std::vector<double> speeds;
  double known_sum = 0;
  std::uint64_t known = 0;
  for (const WorkDone& done : workers) {
    const bool is_known = done.samples > 0 && done.seconds > 0;
    speeds.push_back(is_known ? static_cast<double>(done.samples) / done.seconds : 0);
    known_sum += speeds.back();
    known += is_known ? 1 : 0;
  }
  const double assumed = known == 0 ? 1 : known_sum / static_cast<double>(known);
  for (double& speed : speeds)
    if (speed == 0) speed = assumed;
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  for (double& speed : speeds) speed /= sum;
  return speeds;
}

std::vector<std::uint64_t> divide_batch(std::uint64_t total, std::span<const double> shares) {
  const std::size_t workers = shares.size();
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::uint64_t> sizes(workers, 1);
  if (workers == 0 || total <= workers) return sizes;
  const auto exact = [&](std::size_t worker) {
    return static_cast<double>(total) *
           (sum > 0 ? shares[worker] / sum : 1 / static_cast<double>(workers));
  };
  std::uint64_t dealt = 0;
  std::vector<double> remainders;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const double floor = std::floor(exact(worker));
    sizes[worker] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(floor));
    // The remainder is negative if the size was raised to 1.
    remainders.push_back(exact(worker) - static_cast<double>(sizes[worker]));
    dealt += sizes[worker];
  }
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](std::size_t worker) { return remainders[worker]; });
  for (std::size_t i = 0; dealt < total; i = (i + 1) % workers, ++dealt) ++sizes[order[i]];
  // If sizes that were raised to 1 make the sum too large, takes samples from the largest sizes.
  for (; dealt > total; --dealt)
    --sizes[*std::ranges::max_element(order, {}, [&](std::size_t worker) {
      return std::pair{sizes[worker], -shares[worker]};
    })];
  return sizes;
}

std::vector<std::uint64_t> divide_batch(std::uint64_t total, std::uint64_t workers) {
  return divide_batch(total, std::vector<double>(workers, 1.0));
}

Error small_total_error(std::uint64_t total, std::uint64_t workers) {
  return Error{"dynamic:total=" + std::to_string(total) + " is below the number of workers, " +
               std::to_string(workers) +
               ", each of which takes at least 1 sample at a step; valid: from " +
               std::to_string(workers)};
}

}  // namespace starling::models
