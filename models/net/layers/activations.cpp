// relu, tanh and gelu, which change numbers one by one, and flatten, which changes only the shape.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

template <class T>
void copy_unless_same(std::span<const T> from, std::span<T> to) {
  if (from.data() != to.data()) std::ranges::copy(from, to.begin());
}

/// A layer whose output has the shape of its input.
template <class T>
class Elementwise : public Layer<T> {
 public:
  explicit Elementwise(Shape shape) : shape_(std::move(shape)) {}
  [[nodiscard]] Shape output() const override { return shape_; }

 private:
  Shape shape_;
};

/// An activation whose derivative is a function of its output: `Apply` replaces x by y, `Derive`
/// replaces dy by dx, given y.
template <class T, ActivationSpecification::Kind kind, void (*Apply)(std::span<T>),
          void (*Derive)(std::span<const T>, std::span<T>)>
class ActivationByOutput final : public Elementwise<T> {
 public:
  using Elementwise<T>::Elementwise;
  [[nodiscard]] LayerSpecification specification() const override {
    return ActivationSpecification{kind};
  }
  [[nodiscard]] bool works_in_place() const override { return true; }
  [[nodiscard]] bool reads_output() const override { return true; }

  Saved<T> forward(const Forward<T>& f) const override {
    copy_unless_same(f.x, f.y);
    Apply(f.y);
    return {};
  }
  void backward(const Backward<T>& b) const override {
    if (b.dx.empty()) return;
    Derive(b.y, b.dy);
    copy_unless_same<T>(b.dy, b.dx);
  }
};

template <class T>
using Relu = ActivationByOutput<T, ActivationSpecification::Kind::relu, relu<T>, relu_backward<T>>;
template <class T>
using Tanh = ActivationByOutput<T, ActivationSpecification::Kind::tanh, tanh<T>, tanh_backward<T>>;

/// Approximates x Phi(x) by 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks, Gimpel,
/// arXiv 1606.08415, section 2). Saves the tanh.
template <class T>
class Gelu final : public Elementwise<T> {
 public:
  using Elementwise<T>::Elementwise;
  [[nodiscard]] LayerSpecification specification() const override {
    return ActivationSpecification{ActivationSpecification::Kind::gelu};
  }

  Saved<T> forward(const Forward<T>& f) const override {
    const auto t = f.context.arena.template allocate<T>(f.x.size());
    for (std::size_t i = 0; i < t.size(); ++i)
      t[i] = sqrt_2_over_pi * (f.x[i] + cubic * f.x[i] * f.x[i] * f.x[i]);
    tanh(t);
    for (std::size_t i = 0; i < t.size(); ++i) f.y[i] = T{0.5} * f.x[i] * (1 + t[i]);
    return {.values = t, .indices = {}};
  }
  void backward(const Backward<T>& b) const override {
    const std::span<T> t = b.saved.values;
    for (std::size_t i = 0; i < b.dx.size(); ++i) {
      const T x = b.x[i];
      const T inner_derivative = sqrt_2_over_pi * (1 + 3 * cubic * x * x);
      b.dx[i] = b.dy[i] * T{0.5} * (1 + t[i] + x * (1 - t[i] * t[i]) * inner_derivative);
    }
  }

 private:
  static constexpr T sqrt_2_over_pi =
      static_cast<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  static constexpr T cubic = static_cast<T>(0.044715);
};

template <class T>
class Flatten final : public Layer<T> {
 public:
  explicit Flatten(std::size_t size) : size_(size) {}
  [[nodiscard]] Shape output() const override { return {size_}; }
  [[nodiscard]] LayerSpecification specification() const override { return FlattenSpecification{}; }
  [[nodiscard]] bool works_in_place() const override { return true; }

  Saved<T> forward(const Forward<T>& f) const override {
    copy_unless_same(f.x, f.y);
    return {};
  }
  void backward(const Backward<T>& b) const override {
    if (!b.dx.empty()) copy_unless_same<T>(b.dy, b.dx);
  }

 private:
  std::size_t size_;
};

}  // namespace

template <class T>
LayerPointer<T> make_relu(SpecReader&, const Shape& input) {
  return std::make_shared<Relu<T>>(input);
}
template <class T>
LayerPointer<T> make_tanh(SpecReader&, const Shape& input) {
  return std::make_shared<Tanh<T>>(input);
}
template <class T>
LayerPointer<T> make_gelu(SpecReader&, const Shape& input) {
  return std::make_shared<Gelu<T>>(input);
}
template <class T>
LayerPointer<T> make_flatten(SpecReader&, const Shape& input) {
  return std::make_shared<Flatten<T>>(volume(input));
}

#define STARLING_INSTANTIATE(T)                                     \
  template LayerPointer<T> make_relu<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_tanh<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_gelu<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_flatten<T>(SpecReader&, const Shape&);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
