/// Specifications: the numbers that define what a layer computes, so that another device can make
/// its own kernels for the same plan and parameters. Plain values; thread-safe to read.
#pragma once

#include <cstddef>
#include <variant>

#include "starling/models/kernels/convolution.hpp"

namespace starling::models {

/// Convolution with weights [kernel x kernel x channels x outputs], then a bias [outputs] if any.
struct ConvolutionSpecification {
  ConvolutionShape shape;
  bool bias = true;
};

/// Square windows over an image, with the same stride and padding in both directions.
struct PoolShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  /// The side of the window.
  std::size_t size = 1;
  std::size_t stride = 1;
  /// Rows and columns on each side of the image that windows may cover; they hold no numbers.
  std::size_t padding = 0;

  [[nodiscard]] std::size_t out_height() const {
    return (height + 2 * padding - size) / stride + 1;
  }
  [[nodiscard]] std::size_t out_width() const { return (width + 2 * padding - size) / stride + 1; }
  [[nodiscard]] std::size_t input_size() const { return height * width * channels; }
  [[nodiscard]] std::size_t output_size() const { return out_height() * out_width() * channels; }
};

struct MaxPoolSpecification {
  PoolShape shape;
};
struct AvgPoolSpecification {
  PoolShape shape;
};
/// The mean of each channel over the pixels of [pixels x channels].
struct GlobalAvgPoolSpecification {
  std::size_t pixels = 0;
  std::size_t channels = 0;
};

/// Weights [inputs x outputs], then a bias [outputs] if any.
struct DenseSpecification {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  bool bias = true;
};

/// Weights [ids x width]; each sample looks up `length` ids.
struct EmbeddingSpecification {
  std::size_t length = 0;
  std::size_t ids = 0;
  std::size_t width = 0;
};

/// Changes only the shape, not the numbers.
struct FlattenSpecification {};

struct ActivationSpecification {
  enum class Kind { relu, tanh, gelu };
  Kind kind = Kind::relu;
};

/// The parameters are scale, shift, running mean and running variance, [channels] each. `momentum`
/// is the weight of a batch's statistics in the running ones; `epsilon` is added to variances.
struct BatchNormSpecification {
  std::size_t channels = 0;
  double momentum = 0;
  double epsilon = 0;
};

/// While training, replaces each number by 0 with probability `rate`, and else multiplies it by
/// 1 / (1 - rate).
struct DropoutSpecification {
  double rate = 0;
};

/// While training, mirrors images [height x width x channels] left to right, each with probability
/// 1/2.
struct RandomFlipSpecification {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
};
/// While training, moves images [height x width x channels] by -shift_max to shift_max rows and
/// columns, all shifts equally likely. Pixels that come from outside the image are 0.
struct RandomShiftSpecification {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t shift_max = 0;
};

using LayerSpecification =
    std::variant<ConvolutionSpecification, MaxPoolSpecification, AvgPoolSpecification,
                 GlobalAvgPoolSpecification, DenseSpecification, EmbeddingSpecification,
                 FlattenSpecification, ActivationSpecification, BatchNormSpecification,
                 DropoutSpecification, RandomFlipSpecification, RandomShiftSpecification>;

}  // namespace starling::models
