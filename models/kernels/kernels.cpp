#include "starling/models/kernels/kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/models/kernels/multiversioning.hpp"

// Each kernel X has three functions: X_loop is the template with the loop; X_of is X_loop compiled
// for one precision and for each generation of processor, mostly by the macro STARLING_KERNELS; X
// is the public template, which calls X_of. exp and tanh have no X_loop: their X_of for float uses
// X_element for each number, and their X_of for double uses the standard library.
namespace starling::models {
namespace {

using Size = std::size_t;
using Columns = const std::uint32_t*;

/// The number of partial sums of a sum. It does not depend on the vector width, so that all
/// processors add in the same order.
constexpr Size partial_sums = 64;

template <class T>
STARLING_INLINE T sum_of(const std::array<T, partial_sums>& partial) {
  T sum = 0;
  for (const T value : partial) sum += value;
  return sum;
}

template <class T, class X, class Y>
STARLING_INLINE T dot_loop(const X* x, const Y* y, Size n) {
  std::array<T, partial_sums> partial{};
  Size i = 0;
  for (; i + partial_sums <= n; i += partial_sums) {
#pragma omp simd
    for (Size j = 0; j < partial_sums; ++j)
      partial[j] += static_cast<T>(x[i + j]) * static_cast<T>(y[i + j]);
  }
  for (Size j = 0; i + j < n; ++j)
    partial[j] += static_cast<T>(x[i + j]) * static_cast<T>(y[i + j]);
  return sum_of(partial);
}

template <class X, class T>
STARLING_INLINE void axpy_loop(T a, const X* x, T* y, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) y[i] += a * static_cast<T>(x[i]);
}

template <class T>
STARLING_INLINE void clamp_loop(T limit, T* x, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const T low = x[i] < -limit ? -limit : x[i];
    x[i] = low > limit ? limit : low;
  }
}

template <class T>
STARLING_INLINE void relu_loop(T* x, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) x[i] = x[i] < 0 ? T{0} : x[i];
}

template <class T>
STARLING_INLINE void relu_backward_loop(const T* y, T* dy, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) dy[i] = y[i] > 0 ? dy[i] : T{0};
}

/// Computes e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, and the series of e^r to r^7.
STARLING_INLINE float exp_element(float x) {
  // Adding 1.5 * 2^23 to a float of small magnitude rounds it to a whole number.
  constexpr float rounder = 0x1.8p23F;
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float shifted = x * 1.44269504F + rounder;
  const float n = shifted - rounder;
  const float r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  float series = r * (1.0F / 5040) + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(rounder) + 127U;
  return series * std::bit_cast<float>(exponent << 23U);
}
STARLING_INLINE float tanh_element(float x) { return 1.0F - 2.0F / (exp_element(2.0F * x) + 1.0F); }

STARLING_MULTIVERSION void exp_of(float* x, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) x[i] = exp_element(x[i]);
}
void exp_of(double* x, Size n) {
  for (Size i = 0; i < n; ++i) x[i] = std::exp(x[i]);
}

STARLING_MULTIVERSION void tanh_of(float* x, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) x[i] = tanh_element(x[i]);
}
void tanh_of(double* x, Size n) {
  for (Size i = 0; i < n; ++i) x[i] = std::tanh(x[i]);
}

template <class T>
STARLING_INLINE void tanh_backward_loop(const T* y, T* dy, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) dy[i] *= 1 - y[i] * y[i];
}

template <class T>
STARLING_INLINE void scale_loop(T a, T* x, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) x[i] *= a;
}

template <class T>
STARLING_INLINE void convert_loop(const float* x, T* y, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) y[i] = static_cast<T>(x[i]);
}

template <class T>
STARLING_INLINE void add_column_sums_loop(const T* x, Size rows, T* sums, Size columns) {
  for (Size i = 0; i < rows; ++i) axpy_loop(T{1}, x + i * columns, sums, columns);
}

template <class T>
STARLING_INLINE void add_sparse_product_loop(Columns columns, const float* values, Size entries,
                                             const T* w, T* z, Size width) {
  if (width == 1) {
    for (Size e = 0; e < entries; ++e) z[0] += static_cast<T>(values[e]) * w[columns[e]];
    return;
  }
  for (Size e = 0; e < entries; ++e)
    axpy_loop(static_cast<T>(values[e]), w + columns[e] * width, z, width);
}

template <class T>
STARLING_INLINE void add_sparse_outer_loop(Columns columns, const float* values, Size entries,
                                           const T* dz, T* w, Size width) {
  for (Size e = 0; e < entries; ++e)
    axpy_loop(static_cast<T>(values[e]), dz, w + columns[e] * width, width);
}

#define STARLING_KERNELS(T)                                                                       \
  STARLING_MULTIVERSION T dot_of(const T* x, const T* y, Size n) { return dot_loop<T>(x, y, n); } \
  STARLING_MULTIVERSION double squared_norm_of(const T* x, Size n) {                              \
    return dot_loop<double>(x, x, n);                                                             \
  }                                                                                               \
  STARLING_MULTIVERSION void axpy_of(T a, const T* x, T* y, Size n) { axpy_loop(a, x, y, n); }    \
  STARLING_MULTIVERSION void clamp_of(T limit, T* x, Size n) { clamp_loop(limit, x, n); }         \
  STARLING_MULTIVERSION void scale_of(T a, T* x, Size n) { scale_loop(a, x, n); }                 \
  STARLING_MULTIVERSION void convert_of(const float* x, T* y, Size n) { convert_loop(x, y, n); }  \
  STARLING_MULTIVERSION void relu_of(T* x, Size n) { relu_loop(x, n); }                           \
  STARLING_MULTIVERSION void relu_backward_of(const T* y, T* dy, Size n) {                        \
    relu_backward_loop(y, dy, n);                                                                 \
  }                                                                                               \
  STARLING_MULTIVERSION void tanh_backward_of(const T* y, T* dy, Size n) {                        \
    tanh_backward_loop(y, dy, n);                                                                 \
  }                                                                                               \
  STARLING_MULTIVERSION void add_column_sums_of(const T* x, Size rows, T* sums, Size columns) {   \
    add_column_sums_loop(x, rows, sums, columns);                                                 \
  }                                                                                               \
  STARLING_MULTIVERSION void add_sparse_product_of(Columns columns, const float* values,          \
                                                   Size entries, const T* w, T* z, Size width) {  \
    add_sparse_product_loop(columns, values, entries, w, z, width);                               \
  }                                                                                               \
  STARLING_MULTIVERSION void add_sparse_outer_of(Columns columns, const float* values,            \
                                                 Size entries, const T* dz, T* w, Size width) {   \
    add_sparse_outer_loop(columns, values, entries, dz, w, width);                                \
  }

STARLING_KERNELS(float)
STARLING_KERNELS(double)
STARLING_MULTIVERSION double dot_of(const float* x, const double* y, Size n) {
  return dot_loop<double>(x, y, n);
}
STARLING_MULTIVERSION void axpy_of(double a, const float* x, double* y, Size n) {
  axpy_loop(a, x, y, n);
}

}  // namespace

template <class X, class T>
void axpy(T a, std::span<const X> x, std::span<T> y) {
  STARLING_CHECK(x.size() == y.size());
  axpy_of(a, x.data(), y.data(), y.size());
}

template <class X, class T>
T dot(std::span<const X> x, std::span<const T> y) {
  STARLING_CHECK(x.size() == y.size());
  return dot_of(x.data(), y.data(), y.size());
}

template <class T>
void scale(T a, std::span<T> x) {
  scale_of(a, x.data(), x.size());
}

template <class T>
double squared_norm(std::span<const T> x) {
  return squared_norm_of(x.data(), x.size());
}

template <class T>
double clamp(T limit, std::span<T> x) {
  const double before = squared_norm_of(x.data(), x.size());
  clamp_of(limit, x.data(), x.size());
  return before;
}

template <class T>
void convert(std::span<const float> x, std::span<T> y) {
  STARLING_CHECK(x.size() == y.size());
  convert_of(x.data(), y.data(), y.size());
}

template <class T>
void fill_rows(std::span<const T> bias, std::span<T> z) {
  for (Size offset = 0; offset < z.size(); offset += bias.size())
    std::copy_n(bias.data(), bias.size(), z.data() + offset);
}

template <class T>
void add_column_sums(std::span<const T> x, std::span<T> sums) {
  if (!sums.empty()) add_column_sums_of(x.data(), x.size() / sums.size(), sums.data(), sums.size());
}

template <class T>
void relu(std::span<T> x) {
  relu_of(x.data(), x.size());
}

template <class T>
void relu_backward(std::span<const T> y, std::span<T> dy) {
  STARLING_CHECK(y.size() == dy.size());
  relu_backward_of(y.data(), dy.data(), dy.size());
}

template <class T>
void tanh(std::span<T> x) {
  tanh_of(x.data(), x.size());
}

template <class T>
void tanh_backward(std::span<const T> y, std::span<T> dy) {
  STARLING_CHECK(y.size() == dy.size());
  tanh_backward_of(y.data(), dy.data(), dy.size());
}

template <class T>
void exp(std::span<T> x) {
  exp_of(x.data(), x.size());
}

template <class T>
void add_sparse_product(std::span<const std::uint32_t> columns, std::span<const float> values,
                        std::span<const T> w, std::span<T> z) {
  add_sparse_product_of(columns.data(), values.data(), columns.size(), w.data(), z.data(),
                        z.size());
}

template <class T>
void add_sparse_outer(std::span<const std::uint32_t> columns, std::span<const float> values,
                      std::span<const T> dz, std::span<T> w) {
  add_sparse_outer_of(columns.data(), values.data(), columns.size(), dz.data(), w.data(),
                      dz.size());
}

#define STARLING_INSTANTIATE(T)                                                            \
  template void axpy(T, std::span<const T>, std::span<T>);                                 \
  template T dot(std::span<const T>, std::span<const T>);                                  \
  template void scale(T, std::span<T>);                                                    \
  template double squared_norm(std::span<const T>);                                        \
  template double clamp(T, std::span<T>);                                                  \
  template void convert(std::span<const float>, std::span<T>);                             \
  template void fill_rows(std::span<const T>, std::span<T>);                               \
  template void add_column_sums(std::span<const T>, std::span<T>);                         \
  template void relu(std::span<T>);                                                        \
  template void relu_backward(std::span<const T>, std::span<T>);                           \
  template void tanh(std::span<T>);                                                        \
  template void tanh_backward(std::span<const T>, std::span<T>);                           \
  template void exp(std::span<T>);                                                         \
  template void add_sparse_product(std::span<const std::uint32_t>, std::span<const float>, \
                                   std::span<const T>, std::span<T>);                      \
  template void add_sparse_outer(std::span<const std::uint32_t>, std::span<const float>,   \
                                 std::span<const T>, std::span<T>);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE
template void axpy(double, std::span<const float>, std::span<double>);
template double dot(std::span<const float>, std::span<const double>);

}  // namespace starling::models
