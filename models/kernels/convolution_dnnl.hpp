/// oneDNN's convolutions, which Convolution<float> uses. Many threads may call them at once.
#pragma once

#include <memory>
#include <span>

#include "starling/models/kernels/convolution.hpp"

namespace starling::models {

/// Caches oneDNN's primitives by the batch size n. No two calls use the same primitives at the
/// same time: concurrent calls have different sets. The arguments are those of Convolution.
class DnnlConvolution {
 public:
  /// Returns null if oneDNN is absent or has no implementation for the shape.
  static std::shared_ptr<const DnnlConvolution> make(const ConvolutionShape& shape);

  explicit DnnlConvolution(const ConvolutionShape& shape);
  ~DnnlConvolution();
  DnnlConvolution(const DnnlConvolution&) = delete;
  DnnlConvolution& operator=(const DnnlConvolution&) = delete;

  void forward(std::size_t n, std::span<const float> x, std::span<const float> w,
               std::span<const float> b, std::span<float> y, Arena& arena) const;
  void backward_weights(std::size_t n, std::span<const float> x, std::span<const float> dy,
                        std::span<float> dw, std::span<float> db, Arena& arena) const;
  void backward_input(std::size_t n, std::span<const float> dy, std::span<const float> w,
                      std::span<float> dx, Arena& arena) const;

 private:
  class Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace starling::models
