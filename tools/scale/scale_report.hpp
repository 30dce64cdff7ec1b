/// The text and the JSON of `starling scale`. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/engine/sim/scaling/scaling.hpp"

namespace starling::program {

/// The step on a number of nodes.
struct ScalePoint {
  std::size_t nodes = 1;
  std::vector<scaling::LayerPlan> plans;
  scaling::StepTime predicted = {};
  double simulated_seconds = 0;
};

struct ScaleReport {
  std::string net;
  std::string input;
  /// On the largest number of nodes.
  scaling::Job job = {};
  double one_node_seconds = 0;
  /// By the number of nodes, ascending; at least one.
  std::vector<ScalePoint> points = {};
};

[[nodiscard]] std::string scale_text(const ScaleReport& report);
[[nodiscard]] std::string scale_json(const ScaleReport& report);

}  // namespace starling::program
