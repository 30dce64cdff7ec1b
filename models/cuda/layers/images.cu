// Pooling and augmentation of images.
#include "starling/models/cuda/kernels/images.hpp"

#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

Index to_index(std::size_t number) { return static_cast<Index>(number); }

Pooling make_pooling(const PoolShape& s) {
  return {to_index(s.height),       to_index(s.width),      to_index(s.channels),
          to_index(s.size),         to_index(s.stride),     to_index(s.padding),
          to_index(s.out_height()), to_index(s.out_width())};
}

class MaxPoolLayer final : public DeviceLayer {
 public:
  explicit MaxPoolLayer(const PoolShape& shape) : shape_(shape) {}

  MemoryNeeds prepare(const Context&, std::size_t n, std::size_t) override {
    return {.saved_bytes = n * shape_.output_size() * sizeof(Index), .scratch_bytes = 0};
  }
  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * shape_.output_size(),
             MaxPool{make_pooling(shape_), f.x, f.y, static_cast<Index*>(f.saved)}, "max-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * shape_.input_size(),
             MaxPoolBackward{make_pooling(shape_), static_cast<const Index*>(b.saved), b.dy, b.dx},
             "max-pool");
  }

 private:
  PoolShape shape_;
};

class AvgPoolLayer final : public DeviceLayer {
 public:
  explicit AvgPoolLayer(const PoolShape& shape) : shape_(shape) {}

  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * shape_.output_size(), AvgPool{make_pooling(shape_), f.x, f.y},
             "avg-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * shape_.input_size(),
             AvgPoolBackward{make_pooling(shape_), b.dy, b.dx}, "avg-pool");
  }

 private:
  PoolShape shape_;
};

class GlobalAvgPoolLayer final : public DeviceLayer {
 public:
  explicit GlobalAvgPoolLayer(const GlobalAvgPoolSpecification& specification)
      : specification_(specification) {}

  void forward(const ForwardCall& f) override {
    for_each(
        f.context, f.n * specification_.channels,
        GlobalAvgPool{f.x, f.y, to_index(specification_.pixels), to_index(specification_.channels)},
        "global-avg-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * specification_.pixels * specification_.channels,
             GlobalAvgPoolBackward{b.dy, b.dx, to_index(specification_.pixels),
                                   to_index(specification_.channels)},
             "global-avg-pool");
  }

 private:
  GlobalAvgPoolSpecification specification_;
};

/// Shifts images at random or, if shift_max is 0, mirrors them at random.
class AugmentLayer final : public DeviceLayer {
 public:
  explicit AugmentLayer(const RandomShiftSpecification& specification)
      : specification_(specification) {}

  void forward(const ForwardCall& f) override {
    if (f.training) return augment(f, f.x, f.y, false);
    check(cudaMemcpyAsync(f.y, f.x, f.n * size() * sizeof(float), cudaMemcpyDeviceToDevice,
                          f.context.stream().get()),
          "copying on the device");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx != nullptr) augment(b, b.dy, b.dx, true);
  }

 private:
  [[nodiscard]] std::size_t size() const {
    return specification_.height * specification_.width * specification_.channels;
  }

  void augment(const MicroBatchCall& call, const float* from, float* to, bool is_backward) const {
    for_each(call.context, call.n * size(),
             Augment{from, to, to_index(specification_.height), to_index(specification_.width),
                     to_index(specification_.channels), to_index(specification_.shift_max),
                     is_backward, call.draws},
             "augmenting images");
  }

  RandomShiftSpecification specification_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_max_pool(const PoolShape& shape) {
  return std::make_unique<MaxPoolLayer>(shape);
}
std::unique_ptr<DeviceLayer> make_avg_pool(const PoolShape& shape) {
  return std::make_unique<AvgPoolLayer>(shape);
}
std::unique_ptr<DeviceLayer> make_global_avg_pool(const GlobalAvgPoolSpecification& specification) {
  return std::make_unique<GlobalAvgPoolLayer>(specification);
}
std::unique_ptr<DeviceLayer> make_flip(const RandomFlipSpecification& specification) {
  return std::make_unique<AugmentLayer>(RandomShiftSpecification{
      specification.height, specification.width, specification.channels, 0});
}
std::unique_ptr<DeviceLayer> make_shift(const RandomShiftSpecification& specification) {
  return std::make_unique<AugmentLayer>(specification);
}

}  // namespace starling::models::cuda
