#include "starling/models/kernels/gemm.hpp"

#include <Eigen/Core>

#include "starling/base/check.hpp"
#ifdef STARLING_HAS_DNNL
#include <dnnl.h>

#include "starling/models/kernels/one_thread.hpp"
#endif

namespace starling::models {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Returns the matrix in memory, which is the transpose of `m` if m.transposed.
template <class T>
auto map_stored(const MatrixView<const T>& m) {
  const auto rows = static_cast<Eigen::Index>(m.transposed ? m.columns : m.rows);
  const auto columns = static_cast<Eigen::Index>(m.transposed ? m.rows : m.columns);
  return Eigen::Map<const RowMajor<T>>{m.data, rows, columns};
}

template <class T>
void eigen_gemm(const MatrixView<const T>& a, const MatrixView<const T>& b, T beta,
                const MatrixView<T>& c) {
  Eigen::Map<RowMajor<T>> out{c.data, static_cast<Eigen::Index>(c.rows),
                              static_cast<Eigen::Index>(c.columns)};
  if (beta == T{0}) {
    out.setZero();
  } else if (beta != T{1}) {
    out *= beta;
  }
  const auto left = map_stored(a);
  const auto right = map_stored(b);
  if (a.transposed && b.transposed) {
    out.noalias() += left.transpose() * right.transpose();
  } else if (a.transposed) {
    out.noalias() += left.transpose() * right;
  } else if (b.transposed) {
    out.noalias() += left * right.transpose();
  } else {
    out.noalias() += left * right;
  }
}

/// Computes C = A B + beta C; returns false if oneDNN is absent or fails.
#ifdef STARLING_HAS_DNNL
bool dnnl_gemm(const MatrixView<const float>& a, const MatrixView<const float>& b, float beta,
               const MatrixView<float>& c) {
  const OneThread one_thread;
  const auto row_stride = [](const auto& m) {
    return static_cast<dnnl_dim_t>(m.transposed ? m.rows : m.columns);
  };
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N',
                    static_cast<dnnl_dim_t>(c.rows), static_cast<dnnl_dim_t>(c.columns),
                    static_cast<dnnl_dim_t>(a.columns), 1.0F, a.data, row_stride(a), b.data,
                    row_stride(b), beta, c.data, row_stride(c)) == dnnl_success;
}
#else
bool dnnl_gemm(const MatrixView<const float>&, const MatrixView<const float>&, float,
               const MatrixView<float>&) {
  return false;
}
#endif

}  // namespace

template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
          KernelLibrary library) {
  STARLING_CHECK(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows);
  STARLING_CHECK(!c.transposed);
  if (c.rows == 0 || c.columns == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    if (library == KernelLibrary::onednn && a.columns > 0 && dnnl_gemm(a, b, beta, c)) return;
  }
  eigen_gemm(a, b, beta, c);
}

template <class T>
void transpose(MatrixView<const T> from, MatrixView<T> to) {
  STARLING_CHECK(from.rows == to.columns && from.columns == to.rows);
  STARLING_CHECK(!from.transposed && !to.transposed);
  Eigen::Map<RowMajor<T>>{to.data, static_cast<Eigen::Index>(to.rows),
                          static_cast<Eigen::Index>(to.columns)} = map_stored(from).transpose();
}

template void transpose(MatrixView<const float>, MatrixView<float>);
template void transpose(MatrixView<const double>, MatrixView<double>);
template void gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>,
                   KernelLibrary);
template void gemm(MatrixView<const double>, MatrixView<const double>, double, MatrixView<double>,
                   KernelLibrary);

}  // namespace starling::models
