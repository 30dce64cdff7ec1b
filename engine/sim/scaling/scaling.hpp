/// How the time of a training step changes with the number of nodes: by a model, and by a
/// simulation of every message. Pure functions and values; any thread.
///
/// The step is bulk-synchronous. A batch is divided among the nodes. A layer is either whole on
/// each node, or the nodes form groups, and each node of a group has a part of the layer's output
/// features (hybrid parallelism). After a layer's gradient with respect to the weights is computed,
/// the nodes that have the same part of it sum it by part-reduce and part-broadcast, while they
/// compute the layers below. The next step's pass through the layer waits for that. A layer that is
/// divided in a group first gathers its inputs from the group, and afterwards sums the gradient
/// with respect to its inputs over the group; meanwhile nothing is computed. Source: Das et al.
/// 2016, "Distributed Deep Learning Using Synchronous Stochastic Gradient Descent" (PCL-DNN, arXiv
/// 1602.06709), section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/exchange/collective/cost.hpp"
#include "starling/engine/sim/scaling/layer_loads.hpp"

namespace starling::scaling {

struct Machine {
  /// The floating-point operations that a node makes in a second, when it multiplies matrices.
  double flops_per_second = 1e12;
  /// A node's port sends and receives at the same time.
  collective::Network network{.latency_s = 10e-6, .bytes_per_second = 1.25e9};
};

struct Job {
  std::vector<LayerLoad> layers;
  /// The samples of a step on all nodes together.
  std::uint64_t batch = 256;
  std::size_t nodes = 1;
  Machine machine = {};
  /// True if every node has every layer.
  bool is_data_parallel = false;
};

/// The bytes of an element, and the most bytes of one message: longer ones are cut, so that urgent
/// ones need not wait for them.
inline constexpr double element_bytes = 4;
inline constexpr double message_bytes_max = 0x1p18;
/// The most nodes that are simulated.
inline constexpr std::size_t nodes_max = 256;

/// A collective of a layer, as one node takes part in it.
struct Exchange {
  std::size_t members = 1;
  /// The size of each member's vector.
  double bytes = 0;
  /// The number of slices into which each chunk of the vector is cut.
  std::size_t slices = 1;
  /// How long the collective takes by the model, if nothing else uses the ports.
  double seconds = 0;
};

/// How the nodes share a layer.
struct LayerPlan {
  /// The number of groups. With as many groups as nodes, each node has the whole layer.
  std::size_t groups = 1;
  /// How long a node computes one pass.
  double pass_seconds = 0;
  /// The all-reduce of the gradient with respect to the weights, among the groups.
  Exchange gradient;
  /// In a group: the all-gather of the inputs; the reduce-scatter of the gradient with respect to
  /// them is as large.
  Exchange activations;
};

/// Returns the number of groups with which a layer's port sends the fewest bytes, by the paper's
/// formula: sqrt(2 N B iw ih / (ofm kw kh (2 - overlap))). Here the overlap of sends and receives
/// is 0: a port sends and receives at the same time, but it has to send as many sums as gradients.
/// The result is between 1 and the number of nodes, and may be a fraction.
[[nodiscard]] double groups_by_bytes(const Job& job, const LayerLoad& layer);

/// Returns the plan of each layer. The numbers of groups divide the number of nodes, each node of a
/// group has at least one feature, and no other number for one of the layers makes the predicted
/// step shorter. Requires: 1 <= nodes <= nodes_max, batch >= nodes.
[[nodiscard]] std::vector<LayerPlan> plan_layers(const Job& job);

struct StepTime {
  double seconds = 0;
  /// The part of `seconds` in which a node computes.
  double compute_seconds = 0;
};

/// Predicts the step: a node's port is one resource, on which the exchange of the lowest layer goes
/// first, because the next step needs it first.
[[nodiscard]] StepTime predict(const Job& job, std::span<const LayerPlan> plans);

/// Simulates two steps of all nodes, message by message, and returns the seconds of the second. A
/// message of b bytes keeps the sender's port busy for the latency and b / bandwidth, and the
/// receiver's for as long: at the same time, or once it has received what was sent earlier. Each
/// port sends the message of the lowest layer first.
[[nodiscard]] double simulate(const Job& job, std::span<const LayerPlan> plans);

}  // namespace starling::scaling
