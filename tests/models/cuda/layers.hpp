/// Runs one layer on the CPU, for comparison with a device's kernels.
#pragma once

#include <string>
#include <vector>

#include "starling/models/net/description.hpp"
#include "starling/models/net/layers.hpp"

namespace starling::models {

/// Returns normal random numbers with variance 1.
inline std::vector<float> normals(std::size_t size, std::uint64_t seed, double mean = 0) {
  Random random{seed};
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(mean + random.normal());
  return values;
}

/// A layer with random inputs, parameters and derivatives, and the results of both passes.
struct CpuLayer {
  CpuLayer(const std::string& text, const Shape& input, std::size_t samples, std::uint64_t seed = 1)
      : layer(make_layer<float>(parse_spaced(text).value(), input).value()),
        n(samples),
        x(normals(n * volume(input), seed)),
        y(n * volume(layer->output())),
        w(normals(total_size(layer->parameters()), seed + 1, 2)),
        dy(normals(y.size(), seed + 2)),
        dx(x.size()),
        g(w.size()) {}

  /// Runs both passes; only the forward pass if `training` is false.
  void run(bool training = true) {
    Arena arena;
    Random random{9};
    ComputeContext context{random, arena, training};
    const auto saved = layer->forward({n, w, x, y, context});
    std::vector<float> overwritten_dy = dy;
    if (training) layer->backward({n, w, x, y, saved, 1, true, overwritten_dy, dx, g, context});
  }

  LayerPointer<float> layer;
  /// The number of samples.
  std::size_t n;
  /// The input x, the output y, the parameters w, and the derivatives with respect to y, x and w.
  std::vector<float> x, y, w, dy, dx, g;
};

}  // namespace starling::models
