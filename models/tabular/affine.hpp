/// Computes one affine layer, Z = X W + 1 b^T, over the rows of a table or over another layer's
/// outputs, and its gradient. Any thread may call the functions; they allocate memory only in the
/// arena, except for stored_columns().
#pragma once

#include <span>

#include "starling/models/kernels/arena.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Models process larger batches in micro-batches of this number of rows, so that scratch memory
/// stays in the cache and does not grow with the batch.
inline constexpr std::size_t rows_at_once = 256;

/// The weights W [inputs x outputs] and the bias b [outputs] of a layer, or their gradients.
template <class T>
struct Affine {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::span<T> weights;
  /// Empty for a layer without bias.
  std::span<T> bias;

  /// Returns the layer that the front of `values` holds: the weights, then the bias.
  static Affine from(std::span<T> values, std::size_t inputs, std::size_t outputs, bool with_bias) {
    return {inputs, outputs, values.first(inputs * outputs),
            values.subspan(inputs * outputs, with_bias ? outputs : 0)};
  }
};

/// The rows X [size x width] that a layer reads.
template <class T>
struct Rows {
  std::size_t size = 0;
  /// All of X, row by row; null if X consists of the rows `batch` of `table`.
  const T* values = nullptr;
  const Table* table = nullptr;
  Batch batch;
};

/// Reads rows of a table, at most rows_at_once at a time. Gathers dense rows into one matrix,
/// except if they are adjacent in the table and T is float, or if the layer has one output, because
/// its products are then computed row by row. Does not copy sparse rows.
template <class T>
class RowReader {
 public:
  /// Allocates memory in the arena for batches of up to `batch_size` rows, which a layer with
  /// `outputs` outputs reads.
  RowReader(const Table& table, std::size_t batch_size, std::size_t outputs, Arena& arena);

  /// Returns the rows of `batch`, valid until the next call. Requires: at most rows_at_once rows.
  [[nodiscard]] Rows<T> read(Batch batch) const;
  /// Returns the labels of `batch`, valid until the next call. Requires: at most rows_at_once rows.
  [[nodiscard]] std::span<const float> labels(Batch batch) const;

 private:
  const Table& table_;
  std::span<T> values_;
  std::span<float> labels_;
};

/// Sets z [x.size x outputs] to X W + 1 b^T.
template <class T>
void affine_forward(const Rows<T>& x, const Affine<const T>& layer, std::span<T> z);

/// Adds X^T dZ to the weights' gradient and the column sums of dZ to the bias's gradient. If
/// `is_gradient_zero`, the weights' gradient must be zero, and the function does not read it, which
/// is faster for dense rows.
template <class T>
void affine_backward(const Rows<T>& x, std::span<const T> dz, const Affine<T>& gradient,
                     bool is_gradient_zero = false);

/// Sets dx [n x inputs] to dZ W^T.
template <class T>
void affine_input_gradient(std::span<const T> dz, const Affine<const T>& layer, std::span<T> dx);

/// Returns the columns stored in the rows of `batch`, ascending, without repetition. Requires:
/// table.is_sparse().
[[nodiscard]] std::vector<std::uint32_t> stored_columns(const Table& table, Batch batch);

}  // namespace starling::models
