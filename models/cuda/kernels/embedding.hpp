/// Internal: the body of the backward pass of an embedding of ids; forward is GatherRows.
#pragma once

#include "starling/models/cuda/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Over [n x width]: adds to g the rows of dy of each id, in the order of the batch. `order` lists
/// the rows of x by their ids, equal ones in the batch's order; the first row of each id adds them
/// all.
struct EmbedBackward {
  const float* x;
  const Index* order;
  const float* dy;
  float* g;
  Index n, width;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    Index at = i / width;
    const Index j = i % width;
    const float id = x[order[at]];
    if (at > 0 && x[order[at - 1]] == id) return;
    float sum = 0;
    for (; at < n && x[order[at]] == id; ++at) sum += dy[std::size_t{order[at]} * width + j];
    g[std::size_t{static_cast<Index>(id)} * width + j] += sum;
  }
};

}  // namespace starling::models::cuda
