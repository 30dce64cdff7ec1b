/// The layers of a net as the scaling model sees them: how much they compute and how many numbers
/// they send. Pure functions and values; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/description.hpp"

namespace starling::scaling {

/// A layer with parameters. The letters are those of PCL-DNN (Das et al. 2016, arXiv 1602.06709,
/// section 3): ifm and ofm are the numbers of input and output features, kw x kh is the kernel, and
/// iw x ih and ow x oh are the extents of input and output. A dense layer has extents of 1.
struct LayerLoad {
  /// As in the names of the net's parameters: "layer3.conv2d".
  std::string name;
  /// ofm.
  std::size_t features = 0;
  /// ifm ofm kw kh: the weights that are multiplied at each position of the output. 0 for layers
  /// without matrix products, whose time is left out.
  double weights = 0;
  /// ow oh.
  double positions = 1;
  /// All numbers that are trained: weights, biases, scales.
  double parameters = 0;
  /// ifm iw ih: the numbers of one sample that the layer reads.
  double inputs = 0;

  /// Returns the floating-point operations of one pass over one sample. A step has three such
  /// passes: the outputs, and the gradients with respect to the inputs and to the weights.
  [[nodiscard]] double pass_flops() const { return 2 * weights * positions; }
  /// Returns the operations of a step on one sample for each byte that a node sends or receives, if
  /// every node has the whole layer and its sends and receives overlap fully. With numbers of four
  /// bytes, this is about 1.5 ow oh (section 3.1).
  [[nodiscard]] double flops_per_byte() const { return 3 * pass_flops() / (4 * parameters); }
};

/// Returns the layers with parameters, from the input to the output. Errors name the layer.
/// Refuses nets without matrix products, which would take no time.
/// Requires: `net.input` is not empty.
[[nodiscard]] Result<std::vector<LayerLoad>> layer_loads(const models::NetDescription& net);

}  // namespace starling::scaling
