/// Internal: copies batches to a device: gathers the rows in pinned memory and copies them by one
/// asynchronous copy. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/models/cuda/memory.hpp"
#include "starling/models/cuda/net_run.hpp"

namespace starling::models::cuda {

class Staging {
 public:
  /// For batches of `net`. Each row holds `ids_in_row` ids for the first layer, 0 if that is not an
  /// embedding.
  Staging(const Net<float>& net, std::size_t ids_in_row);

  /// Allocates memory for `rows` rows. Returns true if memory moved. Throws Failure.
  bool reserve(std::size_t rows);
  /// Gathers the rows of `batch`. Requires: reserve(batch.size()) before; no copy of earlier rows
  /// is in flight; the net accepts the labels and ids.
  void fill(const Table& data, Batch batch, std::uint64_t seed);
  /// Puts the copy of the rows that fill() gathered into `stream`.
  void upload(const Stream& stream) const;
  /// The addresses of the copy in the device's memory.
  [[nodiscard]] NetInput input() const;
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  struct Layout;
  [[nodiscard]] Layout layout(std::size_t rows) const;
  /// Writes the positions in x, sorted by their ids, to `order`.
  void sort_by_id(const float* x, Index* order) const;

  std::size_t features_;
  /// Every label must be below this; 0 if labels are real targets.
  std::size_t labels_max_;
  std::size_t ids_in_row_;
  /// Every id must be below this.
  std::size_t ids_max_;
  std::size_t rows_ = 0;
  PinnedMemory host_;
  DeviceMemory device_;
};

}  // namespace starling::models::cuda
