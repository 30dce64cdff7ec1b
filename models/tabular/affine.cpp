#include "starling/models/tabular/affine.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/models/kernels/gemm.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/tabular/batches.hpp"

namespace starling::models {
namespace {

/// Returns true if the rows of `batch` follow each other in the table.
bool are_adjacent(Batch batch) {
  for (std::size_t i = 1; i < batch.size(); ++i)
    if (batch[i] != batch[0] + i) return false;
  return true;
}

/// Adds the product of one row and the weights to z. Requires: the row is sparse, or the layer has
/// one output.
template <class T>
void add_row_product(const Table& table, std::size_t row, std::span<const T> w, std::span<T> z) {
  if (table.is_sparse()) {
    const auto [columns, values] = table.sparse_row(row);
    add_sparse_product<T>(columns, values, w, z);
  } else {
    z[0] += dot<float, T>(table.dense_row(row), w);
  }
}

/// Adds the outer product of one row and dz to the weights' gradient dw. Requires: the row is
/// sparse, or the layer has one output.
template <class T>
void add_row_outer(const Table& table, std::size_t row, std::span<const T> dz, std::span<T> dw) {
  if (table.is_sparse()) {
    const auto [columns, values] = table.sparse_row(row);
    add_sparse_outer<T>(columns, values, dz, dw);
  } else {
    axpy<float, T>(dz[0], table.dense_row(row), dw);
  }
}

}  // namespace

template <class T>
RowReader<T>::RowReader(const Table& table, std::size_t batch_size, std::size_t outputs,
                        Arena& arena)
    : table_(table) {
  const std::size_t rows_max = std::min(batch_size, rows_at_once);
  labels_ = arena.allocate<float>(rows_max);
  if (!table.is_sparse() && outputs > 1) values_ = arena.allocate<T>(rows_max * table.features());
}

template <class T>
Rows<T> RowReader<T>::read(Batch batch) const {
  STARLING_CHECK(batch.size() <= labels_.size());
  if (table_.is_mapped()) table_.prefetch(batch);  // reads all rows at once, not one by one
  Rows<T> rows{batch.size(), nullptr, &table_, batch};
  if (values_.empty() || batch.empty()) return rows;
  if constexpr (std::is_same_v<T, float>) {
    if (are_adjacent(batch) && table_.has_adjacent_rows()) {
      rows.values = table_.dense_row(batch[0]).data();
      return rows;
    }
  }
  const std::size_t width = table_.features();
  for (std::size_t i = 0; i < batch.size(); ++i)
    convert<T>(table_.dense_row(batch[i]), values_.subspan(i * width, width));
  rows.values = values_.data();
  return rows;
}

template <class T>
std::span<const float> RowReader<T>::labels(Batch batch) const {
  STARLING_CHECK(batch.size() <= labels_.size());
  for (std::size_t i = 0; i < batch.size(); ++i) labels_[i] = table_.label(batch[i]);
  return labels_.first(batch.size());
}

template <class T>
void affine_forward(const Rows<T>& x, const Affine<const T>& layer, std::span<T> z) {
  if (layer.bias.empty()) {
    std::ranges::fill(z, T{0});
  } else {
    fill_rows(layer.bias, z);
  }
  if (x.values != nullptr) {
    gemm<T>({x.values, x.size, layer.inputs}, {layer.weights.data(), layer.inputs, layer.outputs},
            T{1}, {z.data(), x.size, layer.outputs});
    return;
  }
  for (std::size_t i = 0; i < x.size; ++i)
    add_row_product<T>(*x.table, x.batch[i], layer.weights,
                       z.subspan(i * layer.outputs, layer.outputs));
}

template <class T>
void affine_backward(const Rows<T>& x, std::span<const T> dz, const Affine<T>& gradient,
                     bool is_gradient_zero) {
  add_column_sums(dz, gradient.bias);
  if (x.values != nullptr) {
    const MatrixView<const T> rows{x.values, x.size, gradient.inputs};
    gemm<T>(rows.transpose(), {dz.data(), x.size, gradient.outputs}, is_gradient_zero ? T{0} : T{1},
            {gradient.weights.data(), gradient.inputs, gradient.outputs});
    return;
  }
  for (std::size_t i = 0; i < x.size; ++i)
    add_row_outer<T>(*x.table, x.batch[i], dz.subspan(i * gradient.outputs, gradient.outputs),
                     gradient.weights);
}

template <class T>
void affine_input_gradient(std::span<const T> dz, const Affine<const T>& layer, std::span<T> dx) {
  const std::size_t rows = dz.size() / layer.outputs;
  const MatrixView<const T> weights{layer.weights.data(), layer.inputs, layer.outputs};
  gemm<T>({dz.data(), rows, layer.outputs}, weights.transpose(), T{0},
          {dx.data(), rows, layer.inputs});
}

std::vector<std::uint32_t> stored_columns(const Table& table, Batch batch) {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t row : batch) {
    const auto columns = table.sparse_row(row).columns;
    found.insert(found.end(), columns.begin(), columns.end());
  }
  return sort_unique(std::move(found));
}

#define STARLING_INSTANTIATE(T)                                                              \
  template class RowReader<T>;                                                               \
  template void affine_forward(const Rows<T>&, const Affine<const T>&, std::span<T>);        \
  template void affine_backward(const Rows<T>&, std::span<const T>, const Affine<T>&, bool); \
  template void affine_input_gradient(std::span<const T>, const Affine<const T>&, std::span<T>);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
