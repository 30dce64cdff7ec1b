/// Internal: a batch on its way to a device: gathered into pinned memory, copied by one
/// asynchronous copy. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/models/cuda/memory.hpp"
#include "starling/models/cuda/net_run.hpp"

namespace starling::models::cuda {

class Staging {
 public:
  /// For rows of that net, of whose first layer each row holds so many ids.
  Staging(const Net<float>& net, std::size_t ids_in_row);

  /// True where memory moved. Throws Failure.
  bool reserve(std::size_t rows);
  /// Gathers the rows. Requires: reserve(batch.size()) before, and no copy of what was here under
  /// way; labels and ids that the net accepts.
  void fill(const Table& data, Batch batch, std::uint64_t seed);
  /// Copies what fill() gathered, as many rows as it did.
  void upload(const Stream& stream) const;
  /// Where it stands then.
  [[nodiscard]] NetInput input() const;
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  struct Layout;
  [[nodiscard]] Layout layout(std::size_t rows) const;
  void gather_order(const float* x, Index* order) const;

  std::size_t features_;
  std::size_t labels_max_;
  std::size_t ids_in_row_;
  /// Ids are below it.
  std::size_t ids_max_;
  std::size_t rows_ = 0;
  PinnedMemory host_;
  DeviceMemory device_;
};

}  // namespace starling::models::cuda
