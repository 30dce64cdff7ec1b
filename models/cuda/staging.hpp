/// Internal: copies batches to a device. Gathers the rows in pinned memory, from which one
/// asynchronous copy brings them to the device. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/models/cuda/memory.hpp"
#include "starling/models/cuda/net_run.hpp"

namespace starling::models::cuda {

/// The rows of one batch, or of a micro-batch of it, in pinned memory and on the device.
class Staging {
 public:
  /// Stages batches for `net`. `ids_in_row` is the number of ids in a row if the first layer is an
  /// embedding, else 0.
  Staging(const Net<float>& net, std::size_t ids_in_row);

  /// Allocates memory for `rows` rows, if it is too small. Returns true if its address changed.
  /// Throws Failure.
  bool reserve(std::size_t rows);
  /// Gathers the rows of `batch`, and `seed`, in pinned memory. Requires: reserve() was called for
  /// at least as many rows; no copy of earlier rows is in flight; the net accepts the labels and
  /// ids.
  void fill(const Table& data, Batch batch, std::uint64_t seed);
  /// Starts, in `stream`, the copy to the device of the rows that fill() gathered.
  void upload(const Stream& stream) const;
  /// The addresses of the rows' copy in the device's memory.
  [[nodiscard]] NetInput input() const;
  /// The number of rows that fill() gathered last.
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  struct Layout;
  [[nodiscard]] Layout layout(std::size_t rows) const;
  /// Writes the positions in x to `order`, sorted by the ids there, equal ids by position.
  void sort_by_id(const float* x, Index* order) const;

  std::size_t features_;
  /// Every label must be below this; 0 if labels are real targets.
  std::size_t label_limit_;
  std::size_t ids_in_row_;
  /// Every id must be below this.
  std::size_t id_limit_;
  std::size_t rows_ = 0;
  PinnedMemory host_;
  DeviceMemory device_;
};

}  // namespace starling::models::cuda
