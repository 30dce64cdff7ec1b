/// Internal: bodies that move rows of a matrix together, and apart again.
#pragma once

#include <cstddef>

#include "starling/models/cuda/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Over y [n x width]: row i is the row of x that rows[i] names. Ids of an embedding are floats.
template <class Id>
struct GatherRows {
  const Id* rows;
  const float* x;
  float* y;
  Index width;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    y[i] = x[std::size_t{static_cast<Index>(rows[i / width])} * width + i % width];
  }
};

/// Over x [n x width]: the reverse of GatherRows. `rows` names no row twice.
struct ScatterRows {
  const Index* rows;
  const float* x;
  float* y;
  Index width;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    y[std::size_t{rows[i / width]} * width + i % width] = x[i];
  }
};

}  // namespace starling::models::cuda
