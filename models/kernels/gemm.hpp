/// Matrix products. Many threads may call them at once; each call runs on its caller's thread
/// alone, whatever the thread count of the library below.
#pragma once

#include <cstddef>
#include <type_traits>

#include "starling/models/kernels/library.hpp"

namespace starling::models {

/// A matrix in memory, row by row without gaps, read as it lies or transposed.
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

/// C = A B + beta C. Requires: shapes that fit, and a C that is not transposed. Where beta is 0, C
/// need not be initialised. float runs on oneDNN where `library` asks for it and oneDNN was found
/// when Starling was built; everything else runs on Eigen.
template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
          Library library = Library::onednn);

/// to = the transpose of `from`. Requires: shapes that fit, no transposed view, and memory that
/// does not overlap.
template <class T>
void transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace starling::models
