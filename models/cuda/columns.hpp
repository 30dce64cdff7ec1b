/// Internal: sums the columns of matrices [rows x channels] in groups of rows (Groups, see
/// kernels/batch_norm.hpp), and transposes matrices. The order of additions depends only on the
/// shape, so that equal inputs give equal results to the bit. Pointers are to the device's memory.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/batch_norm.hpp"

namespace starling::models::cuda {

/// Returns the bytes of the context's scratch that the functions sum_...() below need. They require
/// that Context::reserve_scratch() has reserved these bytes.
[[nodiscard]] std::size_t column_scratch_bytes(const Groups& groups);

/// Computes the sum of x over the rows of each group. Writes the sums to `sums` [groups x
/// channels], or adds them to it if `adds`.
void sum_columns(const Context& context, const Groups& groups, const float* x, bool adds,
                 float* sums);
/// Writes the sums of (x - mean)^2 to `sums`. `mean` holds one mean for each group and channel.
void sum_squares(const Context& context, const Groups& groups, const float* x, const float* mean,
                 float* sums);
/// Writes the sums of dy (x - mean) to `products`, and the sums of dy to `totals`.
void sum_products(const Context& context, const Groups& groups, const float* dy, const float* x,
                  const float* mean, float* products, float* totals);

/// Writes the transpose of `from` [rows x columns] to `to` [columns x rows], or adds it to `to` if
/// `adds`.
void transpose(const Context& context, std::size_t rows, std::size_t columns, const float* from,
               bool adds, float* to);

}  // namespace starling::models::cuda
