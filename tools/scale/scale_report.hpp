/// The text and the JSON of `starling scale`. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/engine/sim/scaling/scaling.hpp"

namespace starling::program {

/// The plan of each layer, and the time of a step, on a number of nodes.
struct ScalePoint {
  std::size_t nodes = 1;
  std::vector<scaling::LayerPlan> plans;
  scaling::StepTime predicted = {};
  double simulated_seconds = 0;
};

struct ScaleReport {
  std::string net;
  /// The shape of a sample.
  std::string input;
  /// The job on the largest number of nodes.
  scaling::Job job = {};
  /// The predicted time of a step on one node.
  double one_node_seconds = 0;
  /// One point for each number of nodes, in ascending order; at least one.
  std::vector<ScalePoint> points = {};
};

[[nodiscard]] std::string scale_text(const ScaleReport& report);
[[nodiscard]] std::string scale_json(const ScaleReport& report);

}  // namespace starling::program
