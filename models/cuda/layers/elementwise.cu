// Layers that compute each element alone, or change only the shape: activations, dropout, flatten.
#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// Does nothing if `to` is `from` or null.
void copy_unless_same(const Context& context, std::size_t size, const float* from, float* to) {
  if (from == to || to == nullptr) return;
  check(cudaMemcpyAsync(to, from, size * sizeof(float), cudaMemcpyDeviceToDevice,
                        context.stream().get()),
        "copying on the device");
}

class ActivationLayer final : public DeviceLayer {
 public:
  ActivationLayer(ActivationSpecification::Kind kind, std::size_t size)
      : kind_(kind), size_(size) {}

  void forward(const ForwardCall& f) override {
    const std::size_t size = f.n * size_;
    switch (kind_) {
      case ActivationSpecification::Kind::relu:
        return for_each(f.context, size, Relu{f.x, f.y}, "relu");
      case ActivationSpecification::Kind::tanh:
        return for_each(f.context, size, Tanh{f.x, f.y}, "tanh");
      case ActivationSpecification::Kind::gelu:
        return for_each(f.context, size, Gelu{f.x, f.y}, "gelu");
    }
  }
  void backward(const BackwardCall& b) override {
    if (b.dx == nullptr) return;
    const std::size_t size = b.n * size_;
    switch (kind_) {
      case ActivationSpecification::Kind::relu:
        return for_each(b.context, size, ReluBackward{b.y, b.dy, b.dx}, "relu");
      case ActivationSpecification::Kind::tanh:
        return for_each(b.context, size, TanhBackward{b.y, b.dy, b.dx}, "tanh");
      case ActivationSpecification::Kind::gelu:
        return for_each(b.context, size, GeluBackward{b.x, b.dy, b.dx}, "gelu");
    }
  }

 private:
  ActivationSpecification::Kind kind_;
  std::size_t size_;
};

class FlattenLayer final : public DeviceLayer {
 public:
  explicit FlattenLayer(std::size_t size) : size_(size) {}
  void forward(const ForwardCall& f) override {
    copy_unless_same(f.context, f.n * size_, f.x, f.y);
  }
  void backward(const BackwardCall& b) override {
    copy_unless_same(b.context, b.n * size_, b.dy, b.dx);
  }

 private:
  std::size_t size_;
};

/// Saves no random numbers: the backward pass computes the same ones again.
class DropoutLayer final : public DeviceLayer {
 public:
  DropoutLayer(double rate, std::size_t size)
      : limit_(static_cast<std::uint32_t>(rate * 0x1p32)),
        scale_(static_cast<float>(1 / (1 - rate))),
        size_(size) {}

  void forward(const ForwardCall& f) override {
    if (!f.training) return copy_unless_same(f.context, f.n * size_, f.x, f.y);
    apply_dropout(f, f.x, f.y);
  }
  void backward(const BackwardCall& b) override {
    if (b.dx != nullptr) apply_dropout(b, b.dy, b.dx);
  }

 private:
  void apply_dropout(const MicroBatchCall& call, const float* x, float* y) const {
    const std::size_t size = call.n * size_;
    for_each(call.context, (size + 3) / 4,
             Dropout{x, y, static_cast<Index>(size), limit_, scale_, call.draws}, "dropout");
  }

  std::uint32_t limit_;
  float scale_;
  std::size_t size_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_activation(ActivationSpecification::Kind kind, std::size_t size) {
  return std::make_unique<ActivationLayer>(kind, size);
}
std::unique_ptr<DeviceLayer> make_flatten(std::size_t size) {
  return std::make_unique<FlattenLayer>(size);
}
std::unique_ptr<DeviceLayer> make_dropout(double rate, std::size_t size) {
  return std::make_unique<DropoutLayer>(rate, size);
}

}  // namespace starling::models::cuda
