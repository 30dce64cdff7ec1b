/// The arithmetic of the models: elementwise loops and reductions, for float and double. Many
/// threads may call all functions at once; none allocates. Loops use the processor's vector units;
/// the order in which sums are added does not depend on the width of these units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace starling::models {

/// Computes y += a x. Requires: equal sizes. x may be float if y is double.
template <class X, class T>
void axpy(T a, std::span<const X> x, std::span<T> y);

/// Returns the sum of x_i y_i. Requires: equal sizes. x may be float if y is double.
template <class X, class T>
[[nodiscard]] T dot(std::span<const X> x, std::span<const T> y);

/// Computes x *= a.
template <class T>
void scale(T a, std::span<T> x);

/// Returns the sum of x_i^2, in double precision.
template <class T>
[[nodiscard]] double squared_norm(std::span<const T> x);

/// Limits every x_i to [-limit, limit] and returns the sum of x_i^2 before that. Keeps NaN.
template <class T>
double clamp(T limit, std::span<T> x);

/// Copies x to y, in y's precision. Requires: equal sizes.
template <class T>
void convert(std::span<const float> x, std::span<T> y);

/// Sets every row of z [n x bias.size()] to `bias`.
template <class T>
void fill_rows(std::span<const T> bias, std::span<T> z);

/// Computes sums_j += sum over i of x_ij, with x [n x sums.size()].
template <class T>
void add_column_sums(std::span<const T> x, std::span<T> sums);

/// Computes x_i = max(x_i, 0). Keeps NaN.
template <class T>
void relu(std::span<T> x);

/// Turns a gradient with respect to y = relu(x) into one with respect to x:
/// dy_i = y_i > 0 ? dy_i : 0.
template <class T>
void relu_backward(std::span<const T> y, std::span<T> dy);

/// Computes x_i = tanh(x_i); within 3e-7 of the exact value in float.
template <class T>
void tanh(std::span<T> x);

/// Turns a gradient with respect to y = tanh(x) into one with respect to x: dy_i *= 1 - y_i^2.
template <class T>
void tanh_backward(std::span<const T> y, std::span<T> dy);

/// Computes x_i = exp(x_i). In float the relative error is below 3e-7 for x_i in [-87, 88]; smaller
/// arguments count as -87, larger ones as 88.
template <class T>
void exp(std::span<T> x);

/// Computes z += sum over the entries e of values_e W[columns_e, :], with W [features x z.size()].
/// Requires: every column < features.
template <class T>
void add_sparse_product(std::span<const std::uint32_t> columns, std::span<const float> values,
                        std::span<const T> w, std::span<T> z);

/// Computes W[columns_e, :] += values_e dz for every entry e, with W [features x dz.size()].
/// Requires: every column < features.
template <class T>
void add_sparse_outer(std::span<const std::uint32_t> columns, std::span<const float> values,
                      std::span<const T> dz, std::span<T> w);

}  // namespace starling::models
