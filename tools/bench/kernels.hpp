/// The products and convolutions that known nets are made of, and how fast a library computes them.
/// Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "starling/models/kernels/convolution.hpp"
#include "starling/models/kernels/library.hpp"

namespace starling::program {

/// A fully connected layer.
struct DenseShape {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
};

/// One layer of a net, whose passes are measured.
struct KernelLayer {
  std::string net;
  std::variant<DenseShape, models::ConvolutionShape> shape;
  /// True for a first layer, whose derivatives by its inputs nobody needs.
  bool is_first = false;
};

/// Returns the layers of two perceptrons, of lenet5 and of psp-cnn, for 28 x 28 images of 10
/// classes.
[[nodiscard]] const std::vector<KernelLayer>& kernel_layers();

/// "dense 784 -> 128", "conv2d 14x14x6 -> 16, 5x5".
[[nodiscard]] std::string print(const KernelLayer& layer);

enum class KernelPass { forward, weights, input };
[[nodiscard]] std::string_view name(KernelPass pass);

/// One pass of a layer over a batch, ready to be run again and again. One thread at a time.
struct Kernel {
  double flops = 0;
  /// The library that runs it, which may differ from the one that was asked for.
  models::Library library = models::Library::eigen;
  std::function<void()> run;
};

/// Requires: batch > 0, a library that is present.
[[nodiscard]] Kernel make_kernel(const KernelLayer& layer, KernelPass pass, std::uint64_t batch,
                                 models::Library library);

/// FLOP per second of processor time, over at least so many seconds of it. Requires: one thread
/// that computes in this process.
[[nodiscard]] double measure(const Kernel& kernel, double seconds);

}  // namespace starling::program
