/// Chooses the algorithm that takes the least time in the cost model. Pure functions; thread-safe.
#pragma once

#include <vector>

#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"
#include "starling/engine/exchange/collective/cost.hpp"

namespace starling::collective {

/// An algorithm, its schedule and what it costs.
struct Plan {
  Algorithm algorithm;
  Schedule schedule;
  Cost cost;
};

/// A request for a collective.
struct Request {
  Operation operation = Operation::all_reduce;
  std::size_t members = 1;
  Rank root = 0;
  /// The bytes of the vector of each member.
  double bytes = 0;
};

/// Makes the plan of one algorithm. Refuses what make_schedule() and cost() refuse.
[[nodiscard]] Result<Plan> make_plan(const Algorithm& algorithm, const Request& request,
                                     const Network& network);

/// Returns the algorithms for any number of members with one port each and no topology. Groups have
/// about sqrt(members) members.
[[nodiscard]] std::vector<Algorithm> common_algorithms(std::size_t members);

/// Returns the plans of common_algorithms(), the fastest first. Equally fast plans are in the order
/// of that list. Refuses what make_schedule() refuses for all algorithms alike. Requires: the
/// network has no topology.
[[nodiscard]] Result<std::vector<Plan>> make_plans(const Request& request, const Network& network);

}  // namespace starling::collective
