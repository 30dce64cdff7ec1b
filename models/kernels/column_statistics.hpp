/// Arithmetic over the columns of row-major matrices of float and double, for batch normalisation.
/// Many threads may call all functions at once; none allocates.
#pragma once

#include <span>

namespace starling::models {

/// Computes sums_j += sum over i of (x_ij - mean_j)^2, with x [n x mean.size()].
template <class T>
void add_column_squares(std::span<const T> x, std::span<const T> mean, std::span<T> sums);

/// Computes sums_j += sum over i of y_ij (x_ij - mean_j), with x and y [n x mean.size()].
template <class T>
void add_column_products(std::span<const T> y, std::span<const T> x, std::span<const T> mean,
                         std::span<T> sums);

/// Computes y_ij = a_j x_ij + b_j, with x and y [n x a.size()]. y may be the same memory as x.
template <class T>
void affine_columns(std::span<const T> a, std::span<const T> x, std::span<const T> b,
                    std::span<T> y);

/// Computes y_ij = a_j y_ij + b_j x_ij + c_j, with x and y [n x a.size()].
template <class T>
void combine_columns(std::span<const T> a, std::span<const T> b, std::span<const T> x,
                     std::span<const T> c, std::span<T> y);

}  // namespace starling::models
