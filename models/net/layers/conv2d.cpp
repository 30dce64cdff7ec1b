// The convolution layer.
#include <cmath>

#include "starling/models/kernels/convolution.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// The largest number of weights, 4 TiB of floats.
constexpr std::size_t weights_max = std::size_t{1} << 40U;

/// A Convolution<T> (kernels/convolution.hpp) with weights [kernel x kernel x channels x outputs]
/// and a bias. Initial weights are normal with variance 2 / (kernel^2 channels) (He et al., ICCV
/// 2015, eq. 10); the initial bias is zero.
template <class T>
class Conv2d final : public Layer<T> {
 public:
  Conv2d(const ConvolutionShape& shape, bool has_bias) : convolution_(shape), has_bias_(has_bias) {}

  [[nodiscard]] Shape output() const override {
    return {shape().out_height(), shape().out_width(), shape().outputs};
  }
  [[nodiscard]] LayerSpecification specification() const override {
    return ConvolutionSpecification{shape(), has_bias_};
  }
  [[nodiscard]] std::vector<Parameter> parameters() const override {
    const auto& s = shape();
    std::vector<Parameter> list{
        {.name = "weights", .shape = {s.kernel, s.kernel, s.channels, s.outputs}}};
    if (has_bias_) list.push_back({.name = "bias", .shape = {s.outputs}, .decay = false});
    return list;
  }
  void initialise(std::span<T> w, Random& random) const override {
    const double deviation = std::sqrt(2.0 / static_cast<double>(shape().window()));
    for (T& weight : weights(w)) weight = static_cast<T>(deviation * random.normal());
    std::ranges::fill(bias(w), T{0});
  }

  Saved<T> forward(const Forward<T>& f) const override {
    convolution_.forward(f.n, f.x, weights(f.w), bias(f.w), f.y, f.context.arena);
    return {};
  }
  void backward(const Backward<T>& b) const override {
    convolution_.backward_weights(b.n, b.x, b.dy, weights(b.g), bias(b.g), b.context.arena);
    if (!b.dx.empty()) convolution_.backward_input(b.n, b.dy, weights(b.w), b.dx, b.context.arena);
  }

 private:
  [[nodiscard]] const ConvolutionShape& shape() const { return convolution_.shape(); }
  /// The parts of the layer's parameters w, or of their gradient. bias() is empty if the layer has
  /// no bias.
  template <class U>
  [[nodiscard]] std::span<U> weights(std::span<U> w) const {
    return w.first(shape().window() * shape().outputs);
  }
  template <class U>
  [[nodiscard]] std::span<U> bias(std::span<U> w) const {
    return w.subspan(shape().window() * shape().outputs);
  }

  Convolution<T> convolution_;
  bool has_bias_;
};

}  // namespace

template <class T>
LayerPointer<T> make_conv2d(SpecReader& reader, const Shape& input) {
  ConvolutionShape shape;
  shape.outputs = read_size(reader, "its output channels");
  shape.kernel = reader.count("kernel", 0, 1, side_max);
  shape.stride = reader.count("stride", 1, 1, side_max);
  shape.padding = reader.count("padding", 0, 0, side_max);
  const bool has_bias = reader.count("bias", 1, 0, 1) == 1;
  if (!reader.has("kernel") && reader.finish())
    reader.refuse("needs kernel=K, the side of its window");
  if (!check_image(reader, input) || shape.outputs == 0 || shape.kernel == 0) return nullptr;
  shape.height = input[0];
  shape.width = input[1];
  shape.channels = input[2];
  if (!check_window(reader, input, shape.kernel, shape.padding)) return nullptr;
  if (shape.window() > weights_max / shape.outputs) {
    reader.refuse("would have more weights than any memory holds");
    return nullptr;
  }
  // Before the layer is made, because oneDNN divides by zero if it plans too large an output.
  const Shape output{shape.out_height(), shape.out_width(), shape.outputs};
  if (const auto fits = check_output(input, output); !fits) {
    reader.refuse(fits.error().message);
    return nullptr;
  }
  return std::make_shared<Conv2d<T>>(shape, has_bias);
}

template LayerPointer<float> make_conv2d<float>(SpecReader&, const Shape&);
template LayerPointer<double> make_conv2d<double>(SpecReader&, const Shape&);

}  // namespace starling::models
