#include "starling/models/kernels/column_statistics.hpp"

#include "starling/base/check.hpp"
#include "starling/models/kernels/multiversioning.hpp"

// Each loop is a template; the macro below compiles it for each precision and generation of
// processor, as in kernels.cpp.
namespace starling::models {
namespace {

using Size = std::size_t;

template <class T>
STARLING_INLINE void squares_loop(const T* x, const T* mean, T* sums, Size rows, Size columns) {
  for (Size i = 0; i < rows; ++i, x += columns) {
#pragma omp simd
    for (Size j = 0; j < columns; ++j) sums[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
  }
}

template <class T>
STARLING_INLINE void products_loop(const T* y, const T* x, const T* mean, T* sums, Size rows,
                                   Size columns) {
  for (Size i = 0; i < rows; ++i, x += columns, y += columns) {
#pragma omp simd
    for (Size j = 0; j < columns; ++j) sums[j] += y[j] * (x[j] - mean[j]);
  }
}

template <class T>
STARLING_INLINE void affine_loop(const T* a, const T* x, const T* b, T* y, Size rows,
                                 Size columns) {
  for (Size i = 0; i < rows; ++i, x += columns, y += columns) {
#pragma omp simd
    for (Size j = 0; j < columns; ++j) y[j] = a[j] * x[j] + b[j];
  }
}

template <class T>
STARLING_INLINE void combine_loop(const T* a, const T* b, const T* x, const T* c, T* y, Size rows,
                                  Size columns) {
  for (Size i = 0; i < rows; ++i, x += columns, y += columns) {
#pragma omp simd
    for (Size j = 0; j < columns; ++j) y[j] = a[j] * y[j] + b[j] * x[j] + c[j];
  }
}

#define STARLING_COLUMNS(T)                                                                   \
  STARLING_MULTIVERSION void squares_of(const T* x, const T* mean, T* sums, Size rows,        \
                                        Size columns) {                                       \
    squares_loop(x, mean, sums, rows, columns);                                               \
  }                                                                                           \
  STARLING_MULTIVERSION void products_of(const T* y, const T* x, const T* mean, T* sums,      \
                                         Size rows, Size columns) {                           \
    products_loop(y, x, mean, sums, rows, columns);                                           \
  }                                                                                           \
  STARLING_MULTIVERSION void affine_of(const T* a, const T* x, const T* b, T* y, Size rows,   \
                                       Size columns) {                                        \
    affine_loop(a, x, b, y, rows, columns);                                                   \
  }                                                                                           \
  STARLING_MULTIVERSION void combine_of(const T* a, const T* b, const T* x, const T* c, T* y, \
                                        Size rows, Size columns) {                            \
    combine_loop(a, b, x, c, y, rows, columns);                                               \
  }

STARLING_COLUMNS(float)
STARLING_COLUMNS(double)

}  // namespace

template <class T>
void add_column_squares(std::span<const T> x, std::span<const T> mean, std::span<T> sums) {
  STARLING_CHECK(sums.size() == mean.size() && x.size() % mean.size() == 0);
  squares_of(x.data(), mean.data(), sums.data(), x.size() / mean.size(), mean.size());
}

template <class T>
void add_column_products(std::span<const T> y, std::span<const T> x, std::span<const T> mean,
                         std::span<T> sums) {
  STARLING_CHECK(sums.size() == mean.size() && x.size() % mean.size() == 0);
  STARLING_CHECK(x.size() == y.size());
  products_of(y.data(), x.data(), mean.data(), sums.data(), x.size() / mean.size(), mean.size());
}

template <class T>
void affine_columns(std::span<const T> a, std::span<const T> x, std::span<const T> b,
                    std::span<T> y) {
  STARLING_CHECK(a.size() == b.size() && x.size() == y.size() && x.size() % a.size() == 0);
  affine_of(a.data(), x.data(), b.data(), y.data(), x.size() / a.size(), a.size());
}

template <class T>
void combine_columns(std::span<const T> a, std::span<const T> b, std::span<const T> x,
                     std::span<const T> c, std::span<T> y) {
  STARLING_CHECK(a.size() == b.size() && a.size() == c.size());
  STARLING_CHECK(x.size() == y.size() && x.size() % a.size() == 0);
  combine_of(a.data(), b.data(), x.data(), c.data(), y.data(), x.size() / a.size(), a.size());
}

#define STARLING_INSTANTIATE(T)                                                                 \
  template void add_column_squares(std::span<const T>, std::span<const T>, std::span<T>);       \
  template void add_column_products(std::span<const T>, std::span<const T>, std::span<const T>, \
                                    std::span<T>);                                              \
  template void affine_columns(std::span<const T>, std::span<const T>, std::span<const T>,      \
                               std::span<T>);                                                   \
  template void combine_columns(std::span<const T>, std::span<const T>, std::span<const T>,     \
                                std::span<const T>, std::span<T>);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
