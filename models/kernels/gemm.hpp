/// Matrix products. Many threads may call them at once. Each call runs on its caller's thread
/// alone, even if the library is set to use more threads.
#pragma once

#include <cstddef>
#include <type_traits>

#include "starling/models/kernels/kernel_library.hpp"

namespace starling::models {

/// A row-major matrix without gaps between rows, or the transpose of one.
template <class T>
struct MatrixView {
  T* data = nullptr;
  /// The extents after transposition.
  std::size_t rows = 0;
  std::size_t columns = 0;
  bool transposed = false;

  [[nodiscard]] MatrixView transpose() const { return {data, columns, rows, !transposed}; }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, columns, transposed};
  }
};

/// Computes C = A B + beta C. Requires: shapes that fit, and a C that is not transposed. If beta is
/// 0, C need not be initialised. float runs on oneDNN if `library` is KernelLibrary::onednn and
/// Starling was built with oneDNN; all other cases run on Eigen.
template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
          KernelLibrary library = KernelLibrary::onednn);

/// Writes the transpose of `from` to `to`. Requires: shapes that fit, views that are not
/// transposed, and memory that does not overlap.
template <class T>
void transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace starling::models
