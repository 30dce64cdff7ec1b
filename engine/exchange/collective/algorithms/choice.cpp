#include "starling/engine/exchange/collective/algorithms/choice.hpp"

#include <algorithm>
#include <cmath>

namespace starling::collective {

Result<Plan> make_plan(const Algorithm& algorithm, const Request& request, const Network& network) {
  auto schedule = make_schedule(algorithm, request.operation, request.members, request.root);
  if (!schedule) return std::move(schedule).error();
  auto costs = cost(*schedule, request.bytes, network);
  if (!costs) return std::move(costs).error().within(print(algorithm));
  return Plan{algorithm, *std::move(schedule), *costs};
}

std::vector<Algorithm> common_algorithms(std::size_t members) {
  const auto group_size = static_cast<std::size_t>(std::ceil(std::sqrt(members)));
  return {Ring{}, BinomialTree{}, DoubleTree{}, Doubling{}, Halving{}, Parts{}, Groups{group_size}};
}

Result<std::vector<Plan>> make_plans(const Request& request, const Network& network) {
  std::vector<Plan> plans;
  for (const Algorithm& algorithm : common_algorithms(request.members)) {
    auto plan = make_plan(algorithm, request, network);
    if (!plan) return std::move(plan).error();
    plans.push_back(*std::move(plan));
  }
  // Equal costs may differ in their last digits, because the same terms were added in another
  // order. Rounding to picoseconds makes such costs equal.
  std::ranges::stable_sort(plans, {},
                           [](const Plan& plan) { return std::round(1e12 * plan.cost.seconds); });
  return plans;
}

}  // namespace starling::collective
