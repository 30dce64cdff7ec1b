/// Internal: copies parameters to a device, and gradients back, through pinned memory, in chunks,
/// so that copies on the host overlap with copies to and from the device. If a parameter is
/// row-sparse, only the rows that a batch touches are read, copied and written. One thread at a
/// time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/host_device.hpp"
#include "starling/models/cuda/memory.hpp"
#include "starling/models/model.hpp"

namespace starling::models::cuda {

class ParameterCopies {
 public:
  /// The rows of row-sparse parameters that a batch uses.
  using Touched = std::vector<TouchedRows>;

  explicit ParameterCopies(const std::vector<Parameter>& parameters);

  /// Returns whether any parameter is row-sparse.
  [[nodiscard]] bool has_row_sparse() const { return rows_.size() > 0; }

  /// Puts the copy of w to `on_device` into the stream. `on_device` and `device_staging` are device
  /// memory as long as w; `device_staging` is overwritten. Requires: no copy of the last call is in
  /// flight.
  void upload(const Context& context, std::span<const float> w, const Touched& touched,
              float* device_staging, float* on_device);
  /// Waits for the gradient at `on_device` and adds it to g. Requires: upload() for the same rows
  /// before.
  void add_to(const Context& context, const float* on_device, const Touched& touched,
              float* device_staging, std::span<float> g);

 private:
  /// The offset and shape of a parameter in the parameter vector.
  struct Tensor {
    std::size_t start = 0;
    std::size_t rows = 0;
    std::size_t width = 0;
  };
  /// Adjacent numbers of the parameter vector.
  struct Stretch {
    std::size_t start = 0;
    std::size_t size = 0;
  };
  struct Chunk;
  /// Calls visit(chunk) for every chunk to copy, always in the same order.
  template <class Visit>
  void for_chunks(const Touched& touched, const Visit& visit) const;

  /// One for each parameter.
  std::vector<Tensor> tensors_;
  /// All parameters that are not row-sparse.
  std::vector<Stretch> dense_;
  PinnedArray<float> w_staged_;
  PinnedArray<float> g_staged_;
  /// The numbers of the touched rows, one parameter after the other; a copy is in rows_.
  PinnedArray<Index> rows_staged_;
  DeviceArray<Index> rows_;
  /// One event for each chunk, recorded after its copy to the host.
  std::vector<Event> chunk_events_;
};

}  // namespace starling::models::cuda
