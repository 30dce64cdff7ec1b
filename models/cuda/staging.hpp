/// Internal: brings a batch to a device: gathers it into pinned memory and copies it by one
/// asynchronous copy. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/models/cuda/memory.hpp"
#include "starling/models/cuda/net_run.hpp"

namespace starling::models::cuda {

class Staging {
 public:
  /// For rows of `net`, each of which holds `ids_in_row` ids for its first layer.
  Staging(const Net<float>& net, std::size_t ids_in_row);

  /// Takes memory for `rows` rows. True where memory moved. Throws Failure.
  bool reserve(std::size_t rows);
  /// Gathers the rows. Requires: reserve(batch.size()) before; no copy of the former rows is in
  /// flight; labels and ids that the net accepts.
  void fill(const Table& data, Batch batch, std::uint64_t seed);
  /// Copies the rows that fill() gathered.
  void upload(const Stream& stream) const;
  /// The place of the copy in the device's memory.
  [[nodiscard]] NetInput input() const;
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  struct Layout;
  [[nodiscard]] Layout layout(std::size_t rows) const;
  void gather_order(const float* x, Index* order) const;

  std::size_t features_;
  std::size_t labels_max_;
  std::size_t ids_in_row_;
  /// The bound of ids: every id is below it.
  std::size_t ids_max_;
  std::size_t rows_ = 0;
  PinnedMemory host_;
  DeviceMemory device_;
};

}  // namespace starling::models::cuda
