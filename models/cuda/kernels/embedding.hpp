/// Internal: the kernel body of an embedding's backward pass; the forward pass is GatherRows.
#pragma once

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Called for each element of dy [n x width]: for each id, adds the rows of dy at the id's
/// positions to the id's row of g, in the order of the batch. The call for the first position of an
/// id adds the rows of all its positions; the other calls do nothing.
struct EmbedBackward {
  /// The id at each position.
  const float* x;
  /// The positions in x, sorted by the ids there, equal ids by position.
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
