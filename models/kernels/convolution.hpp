/// Convolutions over batches of images whose channels are last (NHWC), so that a batch is also a
/// matrix with one pixel in each row. Many threads may call one Convolution at once. Each call runs
/// on its caller's thread alone. With oneDNN, a call allocates new primitives, outside the
/// arena, if no primitives for its batch size are idle; later calls reuse the new ones.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "starling/models/kernels/arena.hpp"
#include "starling/models/kernels/kernel_library.hpp"

namespace starling::models {

/// The sizes of a convolution with a square kernel, and the same stride and padding in both
/// directions.
struct ConvolutionShape {
  /// The size of the input image.
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  /// The number of output channels.
  std::size_t outputs = 0;
  /// The side of the kernel.
  std::size_t kernel = 1;
  std::size_t stride = 1;
  /// Rows and columns of zeros on each side of the image.
  std::size_t padding = 0;

  [[nodiscard]] std::size_t out_height() const { return count_windows(height); }
  [[nodiscard]] std::size_t out_width() const { return count_windows(width); }
  /// The number of inputs from which one output is computed.
  [[nodiscard]] std::size_t window() const { return kernel * kernel * channels; }
  [[nodiscard]] std::size_t input_size() const { return height * width * channels; }
  [[nodiscard]] std::size_t output_size() const { return out_height() * out_width() * outputs; }

 private:
  /// The number of windows along an axis of `extent` pixels.
  [[nodiscard]] std::size_t count_windows(std::size_t extent) const {
    return (extent + 2 * padding - kernel) / stride + 1;
  }
};

class DnnlConvolution;

/// y[p, q, o] = b[o] + sum over i, j, c of x[p stride + i - padding, q stride + j - padding, c]
/// w[i, j, c, o], with x zero outside the image. float runs on oneDNN if Starling was built with
/// oneDNN and oneDNN has code for the shape; all other cases gather the windows into a matrix and
/// multiply it by the weights (im2col).
template <class T>
class Convolution {
 public:
  /// Uses `library` if it has code for the shape. Requires: the kernel fits into the padded image.
  explicit Convolution(const ConvolutionShape& shape, KernelLibrary library = preferred_library());

  [[nodiscard]] const ConvolutionShape& shape() const { return shape_; }
  /// Returns KernelLibrary::onednn if oneDNN's convolution runs, and KernelLibrary::eigen if
  /// windows are gathered and multiplied.
  [[nodiscard]] KernelLibrary library() const {
    return dnnl_ ? KernelLibrary::onednn : KernelLibrary::eigen;
  }

  /// Computes y [n x out_height x out_width x outputs] from x [n x height x width x channels], w
  /// [kernel x kernel x channels x outputs] and b [outputs], which may be empty.
  void forward(std::size_t n, std::span<const T> x, std::span<const T> w, std::span<const T> b,
               std::span<T> y, Arena& arena) const;
  /// Adds the derivatives with respect to w to dw, and those with respect to b to db unless db is
  /// empty.
  void backward_weights(std::size_t n, std::span<const T> x, std::span<const T> dy, std::span<T> dw,
                        std::span<T> db, Arena& arena) const;
  /// Overwrites dx with the derivative with respect to x.
  void backward_input(std::size_t n, std::span<const T> dy, std::span<const T> w, std::span<T> dx,
                      Arena& arena) const;

 private:
  ConvolutionShape shape_;
  /// The library that multiplies gathered windows.
  KernelLibrary products_;
  /// Null if windows are gathered.
  std::shared_ptr<const DnnlConvolution> dnnl_;
};

}  // namespace starling::models
