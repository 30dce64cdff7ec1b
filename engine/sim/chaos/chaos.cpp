#include "starling/engine/sim/chaos/chaos.hpp"

#include <utility>

#include "starling/engine/sim/chaos/chaos_run.hpp"

namespace starling::sim {

ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage) {
  return detail::ChaosRun{scenario, sabotage}.run();
}

/// Compares the texts without their numbers, which name nodes, ranges and steps, and without what
/// follows a colon, which describes the progress of the run.
bool is_alike(std::string_view violation, std::string_view other) {
  const auto kind = [](std::string_view text) {
    std::string words{text.substr(0, text.find(": "))};
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    return words;
  };
  return kind(violation) == kind(other);
}

Scenario shrink(Scenario scenario, std::size_t attempts, Sabotage* sabotage) {
  const std::string violation = run_chaos(scenario, sabotage).violation;
  const auto fails = [&](const Scenario& candidate) {
    if (attempts-- == 0) return false;
    const std::string found = run_chaos(candidate, sabotage).violation;
    return !found.empty() && is_alike(found, violation);
  };
  for (bool has_shrunk = true; has_shrunk && attempts > 0;) {
    has_shrunk = false;
    for (std::size_t i = scenario.faults.size(); i-- > 0 && attempts > 0;) {
      Scenario candidate = scenario;
      candidate.faults.erase(candidate.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails(candidate)) continue;
      scenario = std::move(candidate);
      has_shrunk = true;
    }
    for (double Scenario::*share :
         {&Scenario::loss, &Scenario::duplication, &Scenario::reordering}) {
      Scenario candidate = scenario;
      candidate.*share = 0;
      if (scenario.*share == 0 || attempts == 0 || !fails(candidate)) continue;
      scenario = std::move(candidate);
      has_shrunk = true;
    }
  }
  return scenario;
}

}  // namespace starling::sim
