/// Matrix products. May be called from many threads at once; each call runs on its caller's thread
/// alone, whatever the number of threads of the library below.
#pragma once

#include <cstddef>
#include <type_traits>

#include "starling/models/library.hpp"

namespace starling::models {

/// A matrix in memory, row by row without gaps, seen as it stands or transposed.
template <class T>
struct MatrixView {
  T* data = nullptr;
  /// As seen: after transposition.
  std::size_t rows = 0;
  std::size_t columns = 0;
  bool transposed = false;

  [[nodiscard]] MatrixView transpose() const { return {data, columns, rows, !transposed}; }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, columns, transposed};
  }
};

/// C = A B + beta C. Requires: shapes that fit, and a C that is not transposed. Where beta is 0, C
/// need not be initialised. float runs on oneDNN where it was found when Starling was built and is
/// asked for, double and the rest on Eigen.
template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
          Library library = Library::onednn);

/// to = the transpose of `from`. Requires: shapes that fit, neither transposed, and two places.
template <class T>
void transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace starling::models
