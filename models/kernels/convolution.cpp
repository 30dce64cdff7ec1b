#include "starling/models/kernels/convolution.hpp"

#include <algorithm>
#include <type_traits>

#include "starling/base/check.hpp"
#include "starling/models/kernels/convolution_dnnl.hpp"
#include "starling/models/kernels/gemm.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::models {
namespace {

/// Calls visit(offset in the gathered windows, offset in the image) for every pixel of every window
/// that is within the image. Above or left of the image, the unsigned row or column wraps around to
/// a large number, which is outside the image too.
template <class Visit>
void for_each_window_pixel(const ConvolutionShape& s, Visit visit) {
  std::size_t offset = 0;
  for (std::size_t p = 0; p < s.out_height(); ++p)
    for (std::size_t q = 0; q < s.out_width(); ++q)
      for (std::size_t i = 0; i < s.kernel; ++i)
        for (std::size_t j = 0; j < s.kernel; ++j, offset += s.channels) {
          const std::size_t row = p * s.stride + i - s.padding;
          const std::size_t column = q * s.stride + j - s.padding;
          if (row < s.height && column < s.width)
            visit(offset, (row * s.width + column) * s.channels);
        }
}

/// Writes the windows of one image as the rows of a matrix: [out_height out_width x window].
template <class T>
void gather(const ConvolutionShape& s, std::span<const T> image, std::span<T> windows) {
  std::ranges::fill(windows, T{0});
  for_each_window_pixel(s, [&](std::size_t to, std::size_t from) {
    std::copy_n(image.data() + from, s.channels, windows.data() + to);
  });
}

/// The transpose of gather(): sets every pixel to the sum of its copies in the windows.
template <class T>
void scatter(const ConvolutionShape& s, std::span<const T> windows, std::span<T> image) {
  std::ranges::fill(image, T{0});
  for_each_window_pixel(s, [&](std::size_t from, std::size_t to) {
    for (std::size_t c = 0; c < s.channels; ++c) image[to + c] += windows[from + c];
  });
}

/// Views `values` as a matrix with this number of columns.
template <class T>
MatrixView<T> matrix(std::span<T> values, std::size_t columns) {
  return {values.data(), values.size() / columns, columns};
}

}  // namespace

template <class T>
Convolution<T>::Convolution(const ConvolutionShape& shape, KernelLibrary library)
    : shape_(shape), products_(library) {
  STARLING_CHECK(shape.kernel > 0 && shape.stride > 0);
  STARLING_CHECK(shape.kernel <= std::min(shape.height, shape.width) + 2 * shape.padding);
  if constexpr (std::is_same_v<T, float>)
    if (library == KernelLibrary::onednn) dnnl_ = DnnlConvolution::make(shape);
}

template <class T>
void Convolution<T>::forward(std::size_t n, std::span<const T> x, std::span<const T> w,
                             std::span<const T> b, std::span<T> y, Arena& arena) const {
  STARLING_CHECK(x.size() == n * shape_.input_size() && y.size() == n * shape_.output_size());
  if constexpr (std::is_same_v<T, float>)
    if (dnnl_) return dnnl_->forward(n, x, w, b, y, arena);
  const std::size_t size = shape_.output_size();
  const auto windows = arena.allocate<T>(size / shape_.outputs * shape_.window());
  if (b.empty()) {
    std::ranges::fill(y, T{0});
  } else {
    fill_rows(b, y);
  }
  for (std::size_t i = 0; i < n; ++i) {
    gather<T>(shape_, x.subspan(i * shape_.input_size(), shape_.input_size()), windows);
    gemm<T>(matrix(windows, shape_.window()), matrix(w, shape_.outputs), T{1},
            matrix(y.subspan(i * size, size), shape_.outputs), products_);
  }
}

template <class T>
void Convolution<T>::backward_weights(std::size_t n, std::span<const T> x, std::span<const T> dy,
                                      std::span<T> dw, std::span<T> db, Arena& arena) const {
  STARLING_CHECK(x.size() == n * shape_.input_size() && dy.size() == n * shape_.output_size());
  if constexpr (std::is_same_v<T, float>)
    if (dnnl_) return dnnl_->backward_weights(n, x, dy, dw, db, arena);
  const std::size_t size = shape_.output_size();
  const auto windows = arena.allocate<T>(size / shape_.outputs * shape_.window());
  add_column_sums(dy, db);
  for (std::size_t i = 0; i < n; ++i) {
    gather<T>(shape_, x.subspan(i * shape_.input_size(), shape_.input_size()), windows);
    gemm<T>(matrix(windows, shape_.window()).transpose(),
            matrix(dy.subspan(i * size, size), shape_.outputs), T{1}, matrix(dw, shape_.outputs),
            products_);
  }
}

template <class T>
void Convolution<T>::backward_input(std::size_t n, std::span<const T> dy, std::span<const T> w,
                                    std::span<T> dx, Arena& arena) const {
  STARLING_CHECK(dx.size() == n * shape_.input_size() && dy.size() == n * shape_.output_size());
  if constexpr (std::is_same_v<T, float>)
    if (dnnl_) return dnnl_->backward_input(n, dy, w, dx, arena);
  const std::size_t size = shape_.output_size();
  const auto windows = arena.allocate<T>(size / shape_.outputs * shape_.window());
  for (std::size_t i = 0; i < n; ++i) {
    gemm<T>(matrix(dy.subspan(i * size, size), shape_.outputs),
            matrix(w, shape_.outputs).transpose(), T{0}, matrix(windows, shape_.window()),
            products_);
    scatter<T>(shape_, windows, dx.subspan(i * shape_.input_size(), shape_.input_size()));
  }
}

template class Convolution<float>;
template class Convolution<double>;

}  // namespace starling::models
