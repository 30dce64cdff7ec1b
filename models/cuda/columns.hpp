/// Internal: sums the columns of matrices, and transposes matrices. The order of additions depends
/// only on the shape, so that results repeat to the bit.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/batch_norm.hpp"

namespace starling::models::cuda {

/// Returns the bytes of scratch that the sums below need.
[[nodiscard]] std::size_t column_scratch_bytes(const Groups& groups);

/// Sets sums [groups x channels] to the sums of the rows of x in each group, or adds them to `sums`
/// if `adds`.
void sum_columns(const Context& context, const Groups& groups, const float* x, bool adds,
                 float* sums);
/// Sets `sums` to the sums of (x - mean)^2, with the mean of each group.
void sum_squares(const Context& context, const Groups& groups, const float* x, const float* mean,
                 float* sums);
/// Sets `products` to the sums of dy (x - mean), and `totals` to the sums of dy.
void sum_products(const Context& context, const Groups& groups, const float* dy, const float* x,
                  const float* mean, float* products, float* totals);

/// Sets to [columns x rows] to the transpose of from [rows x columns], or adds it to `to` if
/// `adds`.
void transpose(const Context& context, std::size_t rows, std::size_t columns, const float* from,
               bool adds, float* to);

}  // namespace starling::models::cuda
