/// Internal: copies parameters to a device, and gradients back, in chunks, so that the copies of
/// the host and of the device overlap. For a row-sparse parameter only the rows that a batch
/// touches are copied, and no others are read or written on the host. One thread at a time.
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
  using Touched = std::vector<TouchedRows>;

  explicit ParameterCopies(const std::vector<Parameter>& parameters);

  /// Whether some parameter is row-sparse.
  [[nodiscard]] bool by_rows() const { return rows_.size() > 0; }

  /// Puts the copy of w into the stream. `there` and `spare`, whose contents are lost, are the
  /// device's and as long as w. Requires: no copy of the last call is in flight.
  void upload(const Context& context, std::span<const float> w, const Touched& touched,
              float* spare, float* there);
  /// Adds the gradient at `there` to g, and waits for it. Requires: upload() for the same rows
  /// before.
  void add_to(const Context& context, const float* there, const Touched& touched, float* spare,
              std::span<float> g);

 private:
  /// The place of a parameter in the parameter vector.
  struct Place {
    std::size_t start = 0;
    std::size_t rows = 0;
    std::size_t width = 0;
  };
  /// Adjacent numbers.
  struct Stretch {
    std::size_t start = 0;
    std::size_t size = 0;
  };
  struct Chunk;
  /// Calls visit(chunk) for every chunk to copy, in the same order every time.
  template <class Visit>
  void for_chunks(const Touched& touched, const Visit& visit) const;

  std::vector<Place> places_;
  /// All but row-sparse parameters.
  std::vector<Stretch> dense_;
  PinnedArray<float> w_staged_;
  PinnedArray<float> g_staged_;
  /// The touched rows, one parameter after the other.
  PinnedArray<Index> rows_staged_;
  DeviceArray<Index> rows_;
  /// One event for each chunk, recorded behind its copy.
  std::vector<Event> arrived_;
};

}  // namespace starling::models::cuda
