#include "starling/engine/sim/chaos.hpp"

#include <utility>

#include "starling/engine/sim/chaos_run.hpp"

namespace starling::sim {

ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage) {
  return detail::ChaosRun{scenario, sabotage}.run();
}

Scenario shrink(Scenario scenario, std::size_t attempts, Sabotage* sabotage) {
  const auto fails = [&](const Scenario& candidate) {
    return attempts-- > 0 && !run_chaos(candidate, sabotage).violation.empty();
  };
  for (bool smaller = true; smaller && attempts > 0;) {
    smaller = false;
    for (std::size_t i = scenario.faults.size(); i-- > 0 && attempts > 0;) {
      Scenario candidate = scenario;
      candidate.faults.erase(candidate.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails(candidate)) continue;
      scenario = std::move(candidate);
      smaller = true;
    }
    for (double Scenario::*share :
         {&Scenario::loss, &Scenario::duplication, &Scenario::reordering}) {
      Scenario candidate = scenario;
      candidate.*share = 0;
      if (scenario.*share == 0 || attempts == 0 || !fails(candidate)) continue;
      scenario = std::move(candidate);
      smaller = true;
    }
  }
  return scenario;
}

}  // namespace starling::sim
