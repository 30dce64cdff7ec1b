/// Internal: copies batches to a device. Writes the rows, their labels and the random seed into one
/// block of pinned memory, which one asynchronous copy copies to the device. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/models/cuda/memory.hpp"
#include "starling/models/cuda/net_run.hpp"

namespace starling::models::cuda {

/// The rows of one batch or micro-batch, in pinned memory and in the device's memory.
class Staging {
 public:
  /// Allocates no memory; call reserve() first. `ids_in_row` is NetRun::ids_in_row(): the number of
  /// ids in a row if the net's first layer is an embedding, else 0.
  Staging(const Net<float>& net, std::size_t ids_in_row);

  /// Allocates new memory if the present memory is too small for `rows` rows. Returns true if it
  /// did: the addresses that input() returned are then invalid, and fill() has to be called again.
  /// Throws Failure if there is too little memory.
  bool reserve(std::size_t rows);
  /// Writes the rows of `batch`, their labels and `seed` into pinned memory and, if the net has an
  /// embedding, the order of their ids. Requires: reserve() was called for at least as many rows;
  /// no copy of earlier rows is in flight; `data` has as many features as the net; the net accepts
  /// the labels and ids.
  void fill(const Table& data, Batch batch, std::uint64_t seed);
  /// Adds a copy to `stream`, from pinned memory to the device, of all that fill() wrote. Returns
  /// before the copy is done.
  void upload(const Stream& stream) const;
  /// Returns the addresses in the device's memory to which upload() copies the rows, their labels,
  /// the order of their ids, and the seed.
  [[nodiscard]] NetInput input() const;
  /// Returns the number of rows that the last fill() wrote; 0 after reserve() has returned true.
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  struct Layout;
  [[nodiscard]] Layout layout(std::size_t rows) const;
  /// Writes the positions of all ids in `x` to `order`, sorted by the id at the position, then by
  /// position. Requires: each id is from 0 to below id_limit_.
  void sort_by_id(const float* x, Index* order) const;

  std::size_t features_;
  /// Each label must be at least 0 and below this. 0: the loss accepts every number as a label.
  std::size_t label_limit_;
  std::size_t ids_in_row_;
  /// Each id must be at least 0 and below this. Not used if `ids_in_row_` is 0.
  std::size_t id_limit_;
  std::size_t rows_ = 0;
  PinnedMemory host_;
  DeviceMemory device_;
};

}  // namespace starling::models::cuda
