/// Lists layers of known nets, which compute products and convolutions, and measures how fast a
/// library computes them. Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "starling/models/kernels/convolution.hpp"
#include "starling/models/kernels/kernel_library.hpp"

namespace starling::program {

/// A fully connected layer.
struct DenseShape {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
};

/// A layer of a net whose passes are measured.
struct KernelLayer {
  std::string net;
  std::variant<DenseShape, models::ConvolutionShape> shape;
  /// True for the first layer of a net. Training does not need its derivatives with respect to the
  /// input.
  bool is_first = false;
};

/// Returns the dense and convolution layers of two perceptrons, of lenet5 and of psp-cnn, for 28 x
/// 28 images of 10 classes.
[[nodiscard]] const std::vector<KernelLayer>& kernel_layers();

/// Prints "dense 784 -> 128" or "conv2d 14x14x6 -> 16, 5x5".
[[nodiscard]] std::string print(const KernelLayer& layer);

/// A computation of a layer in training.
enum class KernelPass {
  /// The output of the layer.
  forward,
  /// The derivatives of the loss with respect to the layer's weights.
  weights,
  /// The derivatives of the loss with respect to the layer's input.
  input,
};
[[nodiscard]] std::string_view name(KernelPass pass);

/// One pass of a layer over a batch, which can be run repeatedly. Not thread-safe.
struct Kernel {
  /// Floating-point operations of one run.
  double flops = 0;
  /// The library that computes the pass. It may differ from the library that was asked for.
  models::KernelLibrary library = models::KernelLibrary::eigen;
  std::function<void()> run;
};

/// Makes a pass with random data. If `library` has no code for the pass, another library computes
/// it. Requires: batch > 0, and this build has `library`.
[[nodiscard]] Kernel make_kernel(const KernelLayer& layer, KernelPass pass, std::uint64_t batch,
                                 models::KernelLibrary library);

/// Runs the kernel for at least `seconds` seconds of processor time, and returns its FLOP per
/// second of processor time. Requires: no other thread of this process computes meanwhile.
[[nodiscard]] double measure(const Kernel& kernel, double seconds);

}  // namespace starling::program
