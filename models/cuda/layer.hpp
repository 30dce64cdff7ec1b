/// Internal: one layer's kernels on a device, made from its specification
/// (models/net/layers/layer_specification.hpp). Each object belongs to one worker and is used by
/// one thread at a time; all calls put work into the context's stream and return. Pointers are the
/// device's.
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

/// The arguments that both passes of one piece of a batch share.
struct PieceCall {
  const Context& context;
  /// Samples.
  std::size_t n = 0;
  bool training = true;
  /// Rows whose statistics batch normalisation takes together.
  std::size_t group_samples = 0;
  const float* w = nullptr;
  /// Memory that the layer keeps from the forward to the backward pass.
  void* kept = nullptr;
  Draws draws;
  /// The places of the net's input, ordered by id; see EmbedBackward.
  const Index* order = nullptr;
};

struct ForwardCall : PieceCall {
  const float* x = nullptr;
  float* y = nullptr;
};

struct BackwardCall : PieceCall {
  const float* x = nullptr;
  const float* y = nullptr;
  /// The pass may overwrite it.
  float* dy = nullptr;
  /// The pass overwrites it; null where no derivative by x is needed. May be dy.
  float* dx = nullptr;
  /// The pass adds to it.
  float* g = nullptr;
  /// One sample's share of the batch.
  float weight = 1;
};

/// The memory that a layer needs for batches of some size.
struct Needs {
  std::size_t kept_bytes = 0;
  std::size_t scratch_bytes = 0;
};

class DeviceLayer {
 public:
  virtual ~DeviceLayer() = default;
  /// Called before the first passes with n samples, and not while a step is recorded.
  virtual Needs prepare(const Context&, std::size_t, std::size_t) { return {}; }
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call) = 0;
};

/// Makes the kernels of a specification over inputs of shape `input`. `needs_dx`: whether backward
/// passes may ask for dx, which they do not where the input is the data.
[[nodiscard]] std::unique_ptr<DeviceLayer> make_layer(const LayerForm& form, const Shape& input,
                                                      bool needs_dx);

// One maker a file of layers/.
[[nodiscard]] std::unique_ptr<DeviceLayer> make_convolution(const ConvolutionForm& form,
                                                            bool needs_dx);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_dense(const DenseForm& form);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_batch_norm(const BatchNormForm& form,
                                                           std::size_t input_size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_max_pool(const PoolShape& shape);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_avg_pool(const PoolShape& shape);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_global_avg_pool(const GlobalAvgPoolForm& form);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_flip(const FlipForm& form);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_shift(const ShiftForm& form);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_embedding(const EmbeddingForm& form);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_activation(ActivationForm::Kind kind,
                                                           std::size_t size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_flatten(std::size_t size);
[[nodiscard]] std::unique_ptr<DeviceLayer> make_dropout(double rate, std::size_t size);

}  // namespace starling::models::cuda
