/// Internal: copies parameters to a device, and gradients back, through pinned memory. Copies in
/// chunks, so that copying on the host overlaps with copying to and from the device. If a parameter
/// is row-sparse, copies only its rows that a batch touches. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/cuda/memory.hpp"
#include "starling/models/model.hpp"

namespace starling::models::cuda {

/// The pinned memory through which the parameters and the gradient of one net are copied.
class ParameterCopies {
 public:
  /// For each row-sparse parameter, the rows that a batch uses.
  using TouchedRowLists = std::vector<TouchedRows>;

  explicit ParameterCopies(const std::vector<Parameter>& parameters);

  /// Returns true if any parameter is row-sparse.
  [[nodiscard]] bool has_row_sparse() const { return rows_.size() > 0; }

  /// Starts, in the context's stream, the copy of w to `device_w`. `device_w` and `device_staging`
  /// are device memory of the size of w; `device_staging` is overwritten. Requires: no copy of an
  /// earlier call is in flight.
  void upload(const Context& context, std::span<const float> w, const TouchedRowLists& touched,
              float* device_staging, float* device_w);
  /// Waits until the stream has computed the gradient `device_g`, and adds it to g. Overwrites
  /// `device_staging`. Requires: upload() was called before with the same rows.
  void add_gradient_to(const Context& context, const float* device_g,
                       const TouchedRowLists& touched, float* device_staging, std::span<float> g);

 private:
  /// The offset of a parameter tensor in the parameter vector, and its shape.
  struct Tensor {
    std::size_t start = 0;
    std::size_t rows = 0;
    std::size_t width = 0;
  };
  /// A contiguous part of the parameter vector.
  struct Segment {
    std::size_t start = 0;
    std::size_t size = 0;
  };
  struct Chunk;
  /// Calls visit(chunk) for every chunk to copy, always in the same order.
  template <class Visit>
  void for_chunks(const TouchedRowLists& touched, const Visit& visit) const;

  /// One element for each parameter.
  std::vector<Tensor> tensors_;
  /// The segments of all parameters that are not row-sparse; adjacent ones are merged.
  std::vector<Segment> dense_segments_;
  PinnedArray<float> w_staged_;
  PinnedArray<float> g_staged_;
  /// The row indices of the touched rows, one parameter after the other. rows_ is the device's
  /// copy.
  PinnedArray<Index> rows_staged_;
  DeviceArray<Index> rows_;
  /// One event for each chunk; it is recorded after the chunk's copy to the host.
  std::vector<Event> chunk_events_;
};

}  // namespace starling::models::cuda
