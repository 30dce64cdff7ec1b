#include "starling/engine/sim/scaling/layer_loads.hpp"

#include <algorithm>

#include "starling/models/net/plan.hpp"

namespace starling::scaling {

Result<std::vector<LayerLoad>> layer_loads(const models::NetDescription& net) {
  const auto plan = models::Plan<float>::make(net.layers, net.input);
  if (!plan) return plan.error();
  std::vector<LayerLoad> loads;
  for (const models::Operation<float>& operation : plan->operations()) {
    if (operation.layer == nullptr || operation.parameters_size == 0) continue;
    const models::Shape output = operation.layer->output();
    LayerLoad load{.name = operation.name, .features = output.back()};
    const bool looks_up = operation.name.ends_with(".embedding");
    for (const models::Parameter& parameter : operation.layer->parameters()) {
      if (!parameter.trained) continue;
      const auto size = static_cast<double>(parameter.size());
      load.parameters += size;
      if (parameter.shape.size() > 1 && !looks_up) load.weights += size;
    }
    load.positions = static_cast<double>(models::volume(output) / load.features);
    load.inputs =
        static_cast<double>(models::volume(plan->values()[operation.inputs.front()].shape));
    loads.push_back(std::move(load));
  }
  if (loads.empty()) return Error{"the net has no layer with parameters; valid: one at least"};
  if (std::ranges::all_of(loads, [](const LayerLoad& load) { return load.weights == 0; }))
    return Error{"the net has no layer with matrix products; valid: one at least, as dense 10"};
  return loads;
}

}  // namespace starling::scaling
