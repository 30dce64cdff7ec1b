/// Internal: the interface of a layer on a device, which is made from the layer's specification
/// (models/net/layers/layer_specification.hpp). Each layer object belongs to one worker; one thread
/// at a time uses it. forward() and backward() only put work into the context's stream. Pointers
/// are to the device's memory.
///
/// Names as usual in backpropagation: x is the input, y the output, w the parameters; dx and dy are
/// the derivatives of the loss with respect to x and y, and g is the gradient, the derivative with
/// respect to w.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/philox.hpp"
#include "starling/models/net/layers/layer_specification.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models::cuda {

/// The arguments that the forward and the backward pass have in common. A pass handles one
/// micro-batch of a batch: a large batch is computed in several micro-batches, one after the other.
struct MicroBatchCall {
  const Context& context;
  /// The number of samples in the micro-batch.
  std::size_t n = 0;
  /// False when the net is only evaluated.
  bool training = true;
  /// The number of samples for which batch normalisation computes statistics together.
  std::size_t group_samples = 0;
  /// The layer's parameters.
  const float* w = nullptr;
  /// Memory in which the forward pass saves data for the backward pass.
  void* saved = nullptr;
  /// The layer's random numbers.
  Draws draws;
  /// The positions in the net's input, sorted by id; see EmbedBackward. Null without an embedding.
  const Index* order = nullptr;
};

struct ForwardCall : MicroBatchCall {
  const float* x = nullptr;
  float* y = nullptr;
};

struct BackwardCall : MicroBatchCall {
  const float* x = nullptr;
  const float* y = nullptr;
  /// The pass may overwrite dy.
  float* dy = nullptr;
  /// The pass writes dx here. Null if dx is not needed. May be the same memory as dy.
  float* dx = nullptr;
  /// The pass adds the layer's gradient to g.
  float* g = nullptr;
  /// The share of one sample in the batch: 1 / (the batch's number of samples).
  float weight = 1;
};

/// The memory that a layer needs for batches of some size.
struct MemoryNeeds {
  std::size_t saved_bytes = 0;
  std::size_t scratch_bytes = 0;
};

class DeviceLayer {
 public:
  virtual ~DeviceLayer() = default;
  /// Prepares passes with n samples and returns the memory that they need. Must be called before
  /// the first such pass, and never while a step is recorded. May allocate memory and wait.
  virtual MemoryNeeds prepare(const Context& /*context*/, std::size_t /*n*/,
                              std::size_t /*group_samples*/) {
    return {};
  }
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call) = 0;
};

/// Makes the layer of a specification for inputs of shape `input`. If `needs_dx` is false, which is
/// so if the layer's input is the data, BackwardCall::dx is always null.
[[nodiscard]] std::unique_ptr<DeviceLayer> make_layer(const LayerSpecification& specification,
                                                      const Shape& input, bool needs_dx);

// One function for each kind of layer, defined in the files of layers/.
[[nodiscard]] std::unique_ptr<DeviceLayer> make_convolution(
    const ConvolutionSpecification& specification, bool needs_dx);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_dense(const DenseSpecification& specification);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_batch_norm(
    const BatchNormSpecification& specification, std::size_t input_size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_max_pool(const PoolShape& shape);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_avg_pool(const PoolShape& shape);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_global_avg_pool(
    const GlobalAvgPoolSpecification& specification);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_flip(const RandomFlipSpecification& specification);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_shift(
    const RandomShiftSpecification& specification);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_embedding(
    const EmbeddingSpecification& specification);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_activation(ActivationSpecification::Kind kind,
                                                           std::size_t size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_flatten(std::size_t size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_dropout(double rate, std::size_t size);

}  // namespace starling::models::cuda
