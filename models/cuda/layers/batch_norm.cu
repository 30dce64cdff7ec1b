// Batch normalisation.
#include "starling/models/cuda/kernels/batch_norm.hpp"

#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// Does the same as net/layers/batch_norm.cpp: the running statistics are parameters, and their
/// change is added to the gradient. Does not use cuDNN's normalisation, because that updates the
/// running statistics itself, and computes one statistic for the whole batch.
class BatchNormLayer final : public DeviceLayer {
 public:
  BatchNormLayer(const BatchNormSpecification& specification, std::size_t input_size)
      : channels_(specification.channels),
        pixels_(input_size / specification.channels),
        momentum_(static_cast<float>(specification.momentum)),
        epsilon_(static_cast<float>(specification.epsilon)) {}

  MemoryNeeds prepare(const Context&, std::size_t n, std::size_t group_samples) override {
    const Groups groups = groups_of(n, group_samples);
    return {.saved_bytes = std::size_t{5} * count_statistics(groups) * sizeof(float),
            .scratch_bytes = column_scratch_bytes(groups)};
  }

  void forward(const ForwardCall& f) override {
    const Groups groups = groups_of(f.n, f.training ? f.group_samples : f.n);
    const SavedArrays saved = split_saved(f, groups);
    if (f.training) {
      compute_moments(f, groups, saved);
    } else {
      copy(f, f.w + 2 * channels_, saved.mean);
      copy(f, f.w + 3 * channels_, saved.inverse);
    }
    for_each(f.context, count_statistics(groups),
             PrepareNormalise{static_cast<Index>(channels_), f.w, saved.mean, saved.inverse,
                              saved.a, saved.b, epsilon_},
             "batch-norm");
    for_each(f.context, f.n * pixels_ * channels_, Normalise{groups, saved.a, saved.b, f.x, f.y},
             "batch-norm");
  }

  void backward(const BackwardCall& b) override {
    const Groups groups = groups_of(b.n, b.group_samples);
    const SavedArrays saved = split_saved(b, groups);
    sum_products(b.context, groups, b.dy, b.x, saved.mean, saved.b, saved.c);
    for_each(
        b.context, channels_,
        PrepareNormaliseBackward{groups, b.w, saved.mean, saved.inverse, saved.b, saved.c, saved.a,
                                 b.g, epsilon_, momentum_, b.weight / static_cast<float>(pixels_)},
        "batch-norm");
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * pixels_ * channels_,
             NormaliseBackward{groups, saved.a, saved.b, saved.c, b.x, b.dy, b.dx}, "batch-norm");
  }

 private:
  /// Arrays of [groups x channels]. `inverse` holds the variance until PrepareNormalise runs, and
  /// 1 / sqrt(variance + epsilon) afterwards. a, b and c are the coefficients of y = a x + b in the
  /// forward pass, and of dx = a dy + b x + c in the backward pass.
  struct SavedArrays {
    float* mean;
    float* inverse;
    float* a;
    float* b;
    float* c;
  };

  [[nodiscard]] Groups groups_of(std::size_t n, std::size_t group_samples) const {
    return {static_cast<Index>(n * pixels_), static_cast<Index>(channels_),
            static_cast<Index>(group_samples * pixels_)};
  }
  [[nodiscard]] static std::size_t count_statistics(const Groups& groups) {
    return std::size_t{groups.count()} * groups.channels;
  }
  /// Returns the addresses of the arrays in call.saved.
  [[nodiscard]] static SavedArrays split_saved(const MicroBatchCall& call, const Groups& groups) {
    auto* start = static_cast<float*>(call.saved);
    const std::size_t size = count_statistics(groups);
    return {start, start + size, start + 2 * size, start + 3 * size, start + 4 * size};
  }

  /// Computes the mean and the biased variance of each group and channel, in saved.mean and
  /// saved.inverse.
  void compute_moments(const ForwardCall& f, const Groups& groups, const SavedArrays& saved) const {
    sum_columns(f.context, groups, f.x, false, saved.mean);
    for_each(f.context, count_statistics(groups), DivideByRows{groups, saved.mean}, "batch-norm");
    sum_squares(f.context, groups, f.x, saved.mean, saved.inverse);
    for_each(f.context, count_statistics(groups), DivideByRows{groups, saved.inverse},
             "batch-norm");
  }

  void copy(const ForwardCall& f, const float* from, float* to) const {
    check(cudaMemcpyAsync(to, from, channels_ * sizeof(float), cudaMemcpyDeviceToDevice,
                          f.context.stream().get()),
          "copying on the device");
  }

  std::size_t channels_;
  std::size_t pixels_;
  float momentum_;
  float epsilon_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_batch_norm(const BatchNormSpecification& specification,
                                             std::size_t input_size) {
  return std::make_unique<BatchNormLayer>(specification, input_size);
}

}  // namespace starling::models::cuda
