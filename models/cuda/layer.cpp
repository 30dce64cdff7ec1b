#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// Calls the function of layer.hpp that makes the layer.
struct Maker {
  const Shape& input;
  bool needs_dx;

  using LayerPointer = std::unique_ptr<DeviceLayer>;
  LayerPointer operator()(const ConvolutionSpecification& specification) const {
    return make_convolution(specification, needs_dx);
  }
  LayerPointer operator()(const MaxPoolSpecification& specification) const {
    return make_max_pool(specification.shape);
  }
  LayerPointer operator()(const AvgPoolSpecification& specification) const {
    return make_avg_pool(specification.shape);
  }
  LayerPointer operator()(const GlobalAvgPoolSpecification& specification) const {
    return make_global_avg_pool(specification);
  }
  LayerPointer operator()(const DenseSpecification& specification) const {
    return make_dense(specification);
  }
  LayerPointer operator()(const EmbeddingSpecification& specification) const {
    return make_embedding(specification);
  }
  LayerPointer operator()(const FlattenSpecification&) const { return make_flatten(volume(input)); }
  LayerPointer operator()(const ActivationSpecification& specification) const {
    return make_activation(specification.kind, volume(input));
  }
  LayerPointer operator()(const BatchNormSpecification& specification) const {
    return make_batch_norm(specification, volume(input));
  }
  LayerPointer operator()(const DropoutSpecification& specification) const {
    return make_dropout(specification.rate, volume(input));
  }
  LayerPointer operator()(const RandomFlipSpecification& specification) const {
    return make_flip(specification);
  }
  LayerPointer operator()(const RandomShiftSpecification& specification) const {
    return make_shift(specification);
  }
};

}  // namespace

std::unique_ptr<DeviceLayer> make_layer(const LayerSpecification& specification, const Shape& input,
                                        bool needs_dx) {
  return std::visit(Maker{input, needs_dx}, specification);
}

}  // namespace starling::models::cuda
