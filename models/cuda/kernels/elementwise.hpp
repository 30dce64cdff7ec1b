/// Internal: kernel bodies that compute each element alone: activations, sums, biases, dropout.
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/cuda/kernels/philox.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Computes y += x.
struct Add {
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const { y[i] += x[i]; }
};

/// Adds `bias` to each row of y [rows x columns].
struct AddBias {
  const float* bias;
  float* y;
  Index columns;
  STARLING_HOST_DEVICE void operator()(Index i) const { y[i] += bias[i % columns]; }
};

/// Computes y = max(x, 0); keeps NaN.
struct Relu {
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const { y[i] = x[i] < 0 ? 0 : x[i]; }
};

struct ReluBackward {
  const float* y;
  const float* dy;
  float* dx;
  STARLING_HOST_DEVICE void operator()(Index i) const { dx[i] = y[i] > 0 ? dy[i] : 0; }
};

struct Tanh {
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const { y[i] = tanhf(x[i]); }
};

struct TanhBackward {
  const float* y;
  const float* dy;
  float* dx;
  STARLING_HOST_DEVICE void operator()(Index i) const { dx[i] = dy[i] * (1 - y[i] * y[i]); }
};

/// GELU is computed by its tanh approximation (Hendrycks, Gimpel, arXiv 1606.08415, section 2),
/// which uses the tanh of sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr float gelu_root = 0.7978845608F;
inline constexpr float gelu_cubic = 0.044715F;
STARLING_HOST_DEVICE inline float gelu_tanh(float x) {
  return tanhf(gelu_root * (x + gelu_cubic * x * x * x));
}

struct Gelu {
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    y[i] = 0.5F * x[i] * (1 + gelu_tanh(x[i]));
  }
};

struct GeluBackward {
  const float* x;
  const float* dy;
  float* dx;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    const float t = gelu_tanh(x[i]);
    // The derivative of the argument of tanh.
    const float inner = gelu_root * (1 + 3 * gelu_cubic * x[i] * x[i]);
    dx[i] = dy[i] * 0.5F * (1 + t + x[i] * (1 - t * t) * inner);
  }
};

/// Called once for every four elements, because Philox makes four random words at once. Sets y to
/// x / (1 - rate) with probability 1 - rate, else to 0. The backward pass is the same body on
/// derivatives.
struct Dropout {
  const float* x;
  float* y;
  Index size;
  /// An element is set to 0 if its 32 random bits are below this limit, rate * 2^32.
  std::uint32_t limit;
  /// 1 / (1 - rate).
  float scale;
  Draws draws;
  STARLING_HOST_DEVICE void operator()(Index quad) const {
    const Philox drawn = draws.at(quad);
    for (Index j = 0; j < 4 && 4 * quad + j < size; ++j)
      y[4 * quad + j] = drawn.word[j] < limit ? 0 : scale * x[4 * quad + j];
  }
};

}  // namespace starling::models::cuda
