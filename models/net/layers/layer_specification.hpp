/// A layer's computation in numbers: everything that another device needs to make its own kernels
/// of the layer for the same plan and parameters. Plain values; any thread.
#pragma once

#include <cstddef>
#include <variant>

#include "starling/models/kernels/convolution.hpp"

namespace starling::models {

/// Convolution with weights [kernel x kernel x channels x outputs], then a bias [outputs] if any.
struct ConvolutionForm {
  ConvolutionShape shape;
  bool bias = true;
};

/// Square windows over an image, the same stride and padding both ways.
struct PoolShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t size = 1;
  std::size_t stride = 1;
  std::size_t padding = 0;

  [[nodiscard]] std::size_t out_height() const {
    return (height + 2 * padding - size) / stride + 1;
  }
  [[nodiscard]] std::size_t out_width() const { return (width + 2 * padding - size) / stride + 1; }
  [[nodiscard]] std::size_t input_size() const { return height * width * channels; }
  [[nodiscard]] std::size_t output_size() const { return out_height() * out_width() * channels; }
};

struct MaxPoolForm {
  PoolShape shape;
};
struct AvgPoolForm {
  PoolShape shape;
};
/// Means over the pixels of [pixels x channels].
struct GlobalAvgPoolForm {
  std::size_t pixels = 0;
  std::size_t channels = 0;
};

/// Weights [inputs x outputs], then a bias [outputs] if any.
struct DenseForm {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  bool bias = true;
};

/// Weights [ids x width]; each sample looks up `length` ids.
struct EmbeddingForm {
  std::size_t length = 0;
  std::size_t ids = 0;
  std::size_t width = 0;
};

/// Leaves all numbers as they are.
struct FlattenForm {};

struct ActivationForm {
  enum class Kind { relu, tanh, gelu };
  Kind kind = Kind::relu;
};

/// Parameters scale, shift, mean and variance [channels] each.
struct BatchNormForm {
  std::size_t channels = 0;
  double momentum = 0;
  double epsilon = 0;
};

struct DropoutForm {
  double rate = 0;
};

/// Mirrors images [height x width x channels] left to right.
struct FlipForm {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
};
/// Moves images [height x width x channels] by -most to most rows and columns.
struct ShiftForm {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t most = 0;
};

using LayerForm = std::variant<ConvolutionForm, MaxPoolForm, AvgPoolForm, GlobalAvgPoolForm,
                               DenseForm, EmbeddingForm, FlattenForm, ActivationForm, BatchNormForm,
                               DropoutForm, FlipForm, ShiftForm>;

}  // namespace starling::models
