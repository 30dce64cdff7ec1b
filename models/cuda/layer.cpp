#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

struct Maker {
  const Shape& input;
  bool needs_dx;

  using Made = std::unique_ptr<DeviceLayer>;
  Made operator()(const ConvolutionForm& form) const { return make_convolution(form, needs_dx); }
  Made operator()(const MaxPoolForm& form) const { return make_max_pool(form.shape); }
  Made operator()(const AvgPoolForm& form) const { return make_avg_pool(form.shape); }
  Made operator()(const GlobalAvgPoolForm& form) const { return make_global_avg_pool(form); }
  Made operator()(const DenseForm& form) const { return make_dense(form); }
  Made operator()(const EmbeddingForm& form) const { return make_embedding(form); }
  Made operator()(const FlattenForm&) const { return make_flatten(volume(input)); }
  Made operator()(const ActivationForm& form) const {
    return make_activation(form.kind, volume(input));
  }
  Made operator()(const BatchNormForm& form) const { return make_batch_norm(form, volume(input)); }
  Made operator()(const DropoutForm& form) const { return make_dropout(form.rate, volume(input)); }
  Made operator()(const FlipForm& form) const { return make_flip(form); }
  Made operator()(const ShiftForm& form) const { return make_shift(form); }
};

}  // namespace

std::unique_ptr<DeviceLayer> make_layer(const LayerForm& form, const Shape& input, bool needs_dx) {
  return std::visit(Maker{input, needs_dx}, form);
}

}  // namespace starling::models::cuda
