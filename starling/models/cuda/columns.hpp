/// Internal: sums over the rows of matrices, and transposition. Sums are taken in an order that
/// depends on the shape alone, so that results repeat to the bit.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/batch_norm.hpp"

namespace starling::models::cuda {

/// Scratch that the sums below need.
[[nodiscard]] std::size_t column_scratch_bytes(const Groups& groups);

/// sums [groups x channels], or += where `adds`: of x's rows.
void sum_columns(const Context& context, const Groups& groups, const float* x, bool adds,
                 float* sums);
/// Of (x - mean)^2, with the mean of each group.
void sum_squares(const Context& context, const Groups& groups, const float* x, const float* mean,
                 float* sums);
/// Of dy (x - mean), and of dy.
void sum_products(const Context& context, const Groups& groups, const float* dy, const float* x,
                  const float* mean, float* products, float* totals);

/// to [columns x rows] = from [rows x columns] transposed, or += that.
void transpose(const Context& context, std::size_t rows, std::size_t columns, const float* from,
               bool adds, float* to);

}  // namespace starling::models::cuda
