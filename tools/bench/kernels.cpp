#include "starling/tools/bench/kernels.hpp"

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <span>

#include "starling/base/random.hpp"
#include "starling/models/kernels/gemm.hpp"

namespace starling::program {
namespace {

using models::ConvolutionShape;
using models::KernelLibrary;
using models::MatrixView;
using Floats = std::vector<float>;

/// Returns `n` normally distributed values, the same ones in each call with this `n`.
Floats normal_values(std::size_t n) {
  Random random{n};
  Floats values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::vector<KernelLayer> all_layers() {
  const auto dense = [](const char* net, std::size_t inputs, std::size_t outputs, bool first) {
    return KernelLayer{net, DenseShape{inputs, outputs}, first};
  };
  const auto convolution = [](const char* net, std::size_t side, std::size_t channels,
                              std::size_t outputs, std::size_t padding, bool first) {
    return KernelLayer{net,
                       ConvolutionShape{.height = side,
                                        .width = side,
                                        .channels = channels,
                                        .outputs = outputs,
                                        .kernel = 5,
                                        .padding = padding},
                       first};
  };
  const char* small = "mlp:784-128-10";
  const char* large = "mlp:784-512-512-10";
  return {dense(small, 784, 128, true),
          dense(small, 128, 10, false),
          dense(large, 784, 512, true),
          dense(large, 512, 512, false),
          dense(large, 512, 10, false),
          convolution("lenet5", 28, 1, 6, 2, true),
          convolution("lenet5", 14, 6, 16, 0, false),
          dense("lenet5", 400, 120, false),
          dense("lenet5", 120, 84, false),
          dense("lenet5", 84, 10, false),
          convolution("psp-cnn", 28, 1, 32, 2, true),
          dense("psp-cnn", 6272, 1024, false),
          dense("psp-cnn", 1024, 10, false)};
}

/// The product x [batch x inputs] w [inputs x outputs] = y [batch x outputs], and its derivatives.
/// The views `inputs`, `weights` and `outputs` are of x, w and y.
struct Product {
  Floats x, w, y;
  MatrixView<float> inputs, weights, outputs;
  KernelLibrary library;

  Product(const DenseShape& s, std::uint64_t batch, KernelLibrary library_used)
      : x(normal_values(batch * s.inputs)),
        w(normal_values(s.inputs * s.outputs)),
        y(normal_values(batch * s.outputs)),
        inputs{x.data(), batch, s.inputs},
        weights{w.data(), s.inputs, s.outputs},
        outputs{y.data(), batch, s.outputs},
        library(library_used) {}

  void run(KernelPass pass) {
    if (pass == KernelPass::forward) multiply(inputs, weights, outputs);
    if (pass == KernelPass::weights) multiply(inputs.transpose(), outputs, weights);
    if (pass == KernelPass::input) multiply(outputs, weights.transpose(), inputs);
  }

 private:
  void multiply(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) const {
    models::gemm<float>(a, b, 0.0F, c, library);
  }
};

/// A convolution layer with its data.
struct ConvolutionData {
  models::Convolution<float> convolution;
  /// The number of images.
  std::uint64_t n;
  /// Input, weights, bias and output.
  Floats x, w, b, y;
  models::Arena arena;

  ConvolutionData(const ConvolutionShape& s, std::uint64_t batch, KernelLibrary library)
      : convolution(s, library),
        n(batch),
        x(normal_values(n * s.input_size())),
        w(normal_values(s.window() * s.outputs)),
        b(s.outputs),
        y(normal_values(n * s.output_size())) {}

  void run(KernelPass pass) {
    arena.reset();
    if (pass == KernelPass::forward) convolution.forward(n, x, w, b, y, arena);
    if (pass == KernelPass::weights) convolution.backward_weights(n, x, y, w, b, arena);
    if (pass == KernelPass::input) convolution.backward_input(n, y, w, x, arena);
  }
};

Kernel make(const DenseShape& shape, KernelPass pass, std::uint64_t batch, KernelLibrary library) {
  const auto product = std::make_shared<Product>(shape, batch, library);
  return {.flops = 2 * static_cast<double>(batch * shape.inputs * shape.outputs),
          .library = library,
          .run = [product, pass] { product->run(pass); }};
}

Kernel make(const ConvolutionShape& shape, KernelPass pass, std::uint64_t batch,
            KernelLibrary library) {
  const auto data = std::make_shared<ConvolutionData>(shape, batch, library);
  return {.flops = 2 * static_cast<double>(batch * shape.output_size() * shape.window()),
          .library = data->convolution.library(),
          .run = [data, pass] { data->run(pass); }};
}

std::string print_of(const DenseShape& s) {
  return fmt::format("dense {} -> {}", s.inputs, s.outputs);
}
std::string print_of(const ConvolutionShape& s) {
  return fmt::format("conv2d {}x{}x{} -> {}, {}x{}", s.height, s.width, s.channels, s.outputs,
                     s.kernel, s.kernel);
}

}  // namespace

const std::vector<KernelLayer>& kernel_layers() {
  static const std::vector<KernelLayer> layers = all_layers();
  return layers;
}

std::string print(const KernelLayer& layer) {
  return std::visit([](const auto& shape) { return print_of(shape); }, layer.shape);
}

std::string_view name(KernelPass pass) {
  if (pass == KernelPass::forward) return "forward";
  return pass == KernelPass::weights ? "weights" : "input";
}

Kernel make_kernel(const KernelLayer& layer, KernelPass pass, std::uint64_t batch,
                   KernelLibrary library) {
  return std::visit([&](const auto& shape) { return make(shape, pass, batch, library); },
                    layer.shape);
}

double measure(const Kernel& kernel, double seconds) {
  for (std::uint64_t runs = 1;; runs *= 2) {
    const std::clock_t started_at = std::clock();
    for (std::uint64_t i = 0; i < runs; ++i) kernel.run();
    const double spent_s =
        static_cast<double>(std::clock() - started_at) / static_cast<double>(CLOCKS_PER_SEC);
    if (spent_s >= seconds) return static_cast<double>(runs) * kernel.flops / spent_s;
  }
}

}  // namespace starling::program
