/// Internal: the kernel body of an embedding's backward pass; the forward pass is GatherRows.
#pragma once

#include "starling/models/cuda/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Called for each number of dy [n x width]: adds the rows of dy of each id to g, in the order of
/// the batch. `order` is the positions in x sorted by their ids, equal ids in the order of the
/// batch. The call for the first position of an id adds the rows of all.
struct EmbedBackward {
  const float* x;
  const Index* order;
  const float* dy;
  float* g;
  Index n, width;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    Index k = i / width;
    const Index j = i % width;
    const float id = x[order[k]];
    if (k > 0 && x[order[k - 1]] == id) return;
    float sum = 0;
    for (; k < n && x[order[k]] == id; ++k) sum += dy[std::size_t{order[k]} * width + j];
    g[std::size_t{static_cast<Index>(id)} * width + j] += sum;
  }
};

}  // namespace starling::models::cuda
