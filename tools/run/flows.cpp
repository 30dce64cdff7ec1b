#include "starling/tools/run/flows.hpp"

#include <algorithm>

#include "starling/base/alternatives.hpp"

namespace starling::program {

std::vector<FlowEntry> all_flows(const Registry& registry) {
  std::vector<FlowEntry> flows = registry.flows();
  Registry built_in;
  for_each_alternative<BuiltInFlows>([&]<class F>(const F&) { built_in.flow<F>(); });
  for (const FlowEntry& flow : built_in.flows())
    if (std::ranges::find(flows, flow.name, &FlowEntry::name) == flows.end()) flows.push_back(flow);
  return flows;
}

}  // namespace starling::program
