// Pooling and augmentation of images.
#include "starling/models/cuda/kernels/images.hpp"

#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

Index index(std::size_t number) { return static_cast<Index>(number); }

Pooling pooling(const PoolShape& s) {
  return {index(s.height), index(s.width),   index(s.channels),     index(s.size),
          index(s.stride), index(s.padding), index(s.out_height()), index(s.out_width())};
}

class MaxPoolLayer final : public DeviceLayer {
 public:
  explicit MaxPoolLayer(const PoolShape& shape) : shape_(shape) {}

  Needs prepare(const Context&, std::size_t n, std::size_t) override {
    return {.kept_bytes = n * shape_.output_size() * sizeof(Index), .scratch_bytes = 0};
  }
  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * shape_.output_size(),
             MaxPool{pooling(shape_), f.x, f.y, static_cast<Index*>(f.kept)}, "max-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * shape_.input_size(),
             MaxPoolBackward{pooling(shape_), static_cast<const Index*>(b.kept), b.dy, b.dx},
             "max-pool");
  }

 private:
  PoolShape shape_;
};

class AvgPoolLayer final : public DeviceLayer {
 public:
  explicit AvgPoolLayer(const PoolShape& shape) : shape_(shape) {}

  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * shape_.output_size(), AvgPool{pooling(shape_), f.x, f.y}, "avg-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * shape_.input_size(), AvgPoolBackward{pooling(shape_), b.dy, b.dx},
             "avg-pool");
  }

 private:
  PoolShape shape_;
};

class GlobalAvgPoolLayer final : public DeviceLayer {
 public:
  explicit GlobalAvgPoolLayer(const GlobalAvgPoolForm& form) : form_(form) {}

  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * form_.channels,
             GlobalAvgPool{f.x, f.y, index(form_.pixels), index(form_.channels)},
             "global-avg-pool");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    for_each(b.context, b.n * form_.pixels * form_.channels,
             GlobalAvgPoolBackward{b.dy, b.dx, index(form_.pixels), index(form_.channels)},
             "global-avg-pool");
  }

 private:
  GlobalAvgPoolForm form_;
};

/// Mirrors where `most` is 0.
class AugmentLayer final : public DeviceLayer {
 public:
  explicit AugmentLayer(const ShiftForm& form) : form_(form) {}

  void forward(const ForwardCall& f) override {
    if (f.training) return move(f, f.x, f.y, false);
    check(cudaMemcpyAsync(f.y, f.x, f.n * size() * sizeof(float), cudaMemcpyDeviceToDevice,
                          f.context.stream().get()),
          "copying on the device");
  }
  void backward(const BackwardCall& b) override {
    if (b.dx != nullptr) move(b, b.dy, b.dx, true);
  }

 private:
  [[nodiscard]] std::size_t size() const { return form_.height * form_.width * form_.channels; }

  void move(const PieceCall& call, const float* from, float* to, bool backward) const {
    for_each(call.context, call.n * size(),
             Augment{from, to, index(form_.height), index(form_.width), index(form_.channels),
                     index(form_.most), backward, call.draws},
             "augmenting images");
  }

  ShiftForm form_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_max_pool(const PoolShape& shape) {
  return std::make_unique<MaxPoolLayer>(shape);
}
std::unique_ptr<DeviceLayer> make_avg_pool(const PoolShape& shape) {
  return std::make_unique<AvgPoolLayer>(shape);
}
std::unique_ptr<DeviceLayer> make_global_avg_pool(const GlobalAvgPoolForm& form) {
  return std::make_unique<GlobalAvgPoolLayer>(form);
}
std::unique_ptr<DeviceLayer> make_flip(const FlipForm& form) {
  return std::make_unique<AugmentLayer>(ShiftForm{form.height, form.width, form.channels, 0});
}
std::unique_ptr<DeviceLayer> make_shift(const ShiftForm& form) {
  return std::make_unique<AugmentLayer>(form);
}

}  // namespace starling::models::cuda
