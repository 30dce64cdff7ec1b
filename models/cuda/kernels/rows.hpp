/// Internal: kernel bodies that gather rows of a matrix, and scatter them back.
#pragma once

#include <cstddef>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Called for each element of y [n x width]: sets row i of y to row rows[i] of x. The type Id is
/// float for the ids of an embedding, which are features.
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

/// Called for each element of x [n x width]: sets row rows[i] of y to row i of x. Requires: `rows`
/// contains no row twice.
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
