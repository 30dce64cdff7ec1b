/// One affine layer, Z = X W + 1 b^T, over rows of a table or over another layer's outputs. Any
/// thread may call it; nothing is allocated beyond what the arena hands out.
#pragma once

#include <span>

#include "starling/models/kernels/arena.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Rows handled at once: models walk larger batches in pieces of this many rows, so that scratch
/// memory stays in the cache and does not grow with the batch.
inline constexpr std::size_t rows_at_once = 256;

/// Weights W [inputs x outputs] and bias b [outputs] of a layer, or the gradients by them.
template <class T>
struct Affine {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::span<T> weights;
  /// Empty for a layer without bias.
  std::span<T> bias;

  /// Cuts a layer from the front of `values`: the weights, then the bias.
  static Affine from(std::span<T> values, std::size_t inputs, std::size_t outputs, bool with_bias) {
    return {inputs, outputs, values.first(inputs * outputs),
            values.subspan(inputs * outputs, with_bias ? outputs : 0)};
  }
};

/// The rows X [size x width] that a layer reads.
template <class T>
struct Rows {
  std::size_t size = 0;
  /// All of X, row by row; null where the rows are read from the table one by one.
  const T* values = nullptr;
  const Table* table = nullptr;
  Batch batch;
};

/// Reads rows of a table, at most rows_at_once at a time. Uses sparse rows where they lie, and
/// dense rows too where gathering them would gain nothing.
template <class T>
class RowReader {
 public:
  /// For a layer of `outputs` outputs.
  RowReader(const Table& table, std::size_t batch_size, std::size_t outputs, Arena& arena);

  /// The rows of `batch`, valid until the next call. Requires: at most rows_at_once of them.
  [[nodiscard]] Rows<T> read(Batch batch) const;
  /// Their labels, valid until the next call.
  [[nodiscard]] std::span<const float> labels(Batch batch) const;

 private:
  const Table& table_;
  std::span<T> values_;
  std::span<float> labels_;
};

/// z [x.size x outputs] = X W + 1 b^T.
template <class T>
void affine_forward(const Rows<T>& x, const Affine<const T>& layer, std::span<T> z);

/// Adds X^T dZ to the weights' gradient and the column sums of dZ to the bias's. Where `is_zero`
/// says that the gradient is still zero, the weights' gradient need not be read, which is faster
/// for dense rows.
template <class T>
void affine_backward(const Rows<T>& x, std::span<const T> dz, const Affine<T>& gradient,
                     bool is_zero = false);

/// dx [n x inputs] = dZ W^T.
template <class T>
void affine_input_gradient(std::span<const T> dz, const Affine<const T>& layer, std::span<T> dx);

/// Returns the columns stored in the rows of `batch`, ascending, without repetition. Requires:
/// table.is_sparse().
[[nodiscard]] std::vector<std::uint32_t> stored_columns(const Table& table, Batch batch);

}  // namespace starling::models
