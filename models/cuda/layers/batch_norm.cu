// Batch normalisation.
#include "starling/models/cuda/kernels/batch_norm.hpp"

#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// As net/layers/batch_norm.cpp: running statistics are parameters, whose "gradient" is their
/// change. cuDNN's normalisation would update them by itself and knows no groups.
class BatchNormLayer final : public DeviceLayer {
 public:
  BatchNormLayer(const BatchNormForm& form, std::size_t input_size)
      : channels_(form.channels),
        pixels_(input_size / form.channels),
        momentum_(static_cast<float>(form.momentum)),
        epsilon_(static_cast<float>(form.epsilon)) {}

  Needs prepare(const Context&, std::size_t n, std::size_t group_samples) override {
    const Groups groups = groups_of(n, group_samples);
    return {.kept_bytes = std::size_t{5} * statistics(groups) * sizeof(float),
            .scratch_bytes = column_scratch_bytes(groups)};
  }

  void forward(const ForwardCall& f) override {
    const Groups groups = groups_of(f.n, f.training ? f.group_samples : f.n);
    const Kept kept = parts(f, groups);
    if (f.training) {
      moments(f, groups, kept);
    } else {
      copy(f, f.w + 2 * channels_, kept.mean);
      copy(f, f.w + 3 * channels_, kept.inverse);
    }
    for_each(f.context, statistics(groups),
             Normaliser{static_cast<Index>(channels_), f.w, kept.mean, kept.inverse, kept.a, kept.b,
                        epsilon_},
             "batch-norm");
    for_each(f.context, f.n * pixels_ * channels_, Normalise{groups, kept.a, kept.b, f.x, f.y},
             "batch-norm");
  }

  void backward(const BackwardCall& b) override {
    const Groups groups = groups_of(b.n, b.group_samples);
    const Kept kept = parts(b, groups);
    sum_products(b.context, groups, b.dy, b.x, kept.mean, kept.b, kept.c);
    for_each(b.context, channels_,
             NormaliserBackward{groups, b.w, kept.mean, kept.inverse, kept.b, kept.c, kept.a, b.g,
                                epsilon_, momentum_, b.weight / static_cast<float>(pixels_)},
             "batch-norm");
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * pixels_ * channels_,
             NormaliseBackward{groups, kept.a, kept.b, kept.c, b.x, b.dy, b.dx}, "batch-norm");
  }

 private:
  /// [groups x channels] each; a, b and c are factors.
  struct Kept {
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
  [[nodiscard]] static std::size_t statistics(const Groups& groups) {
    return std::size_t{groups.count()} * groups.channels;
  }
  [[nodiscard]] static Kept parts(const PieceCall& call, const Groups& groups) {
    auto* first = static_cast<float*>(call.kept);
    const std::size_t size = statistics(groups);
    return {first, first + size, first + 2 * size, first + 3 * size, first + 4 * size};
  }

  void moments(const ForwardCall& f, const Groups& groups, const Kept& kept) const {
    sum_columns(f.context, groups, f.x, false, kept.mean);
    for_each(f.context, statistics(groups), DivideByRows{groups, kept.mean}, "batch-norm");
    sum_squares(f.context, groups, f.x, kept.mean, kept.inverse);
    for_each(f.context, statistics(groups), DivideByRows{groups, kept.inverse}, "batch-norm");
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

std::unique_ptr<DeviceLayer> make_batch_norm(const BatchNormForm& form, std::size_t input_size) {
  return std::make_unique<BatchNormLayer>(form, input_size);
}

}  // namespace starling::models::cuda
