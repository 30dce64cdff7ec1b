/// The plan by which a net is computed: its operations in order, and which values and derivatives
/// share memory. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/layers/layer.hpp"

namespace starling::models {

/// An operation computes one value of the net from earlier ones. Values are numbered: 0 is the
/// net's input, and each operation computes the next.
template <class T>
struct Operation {
  /// The layer; null if the operation adds its inputs, which have the same shape.
  LayerPointer<T> layer;
  /// The values that the operation reads: one for a layer, two or more for a sum.
  std::vector<std::size_t> inputs;
  /// The value that the operation computes.
  std::size_t output = 0;
  /// True if the output uses the memory of inputs[0]; their derivatives share memory too.
  bool in_place = false;
  /// For each input: true if an operation that runs earlier in the backward pass has written a
  /// derivative with respect to this input, to which this operation must add its own.
  std::vector<bool> adds_derivative = {};
  /// If adds_derivative[0]: the block in which the layer computes its derivative before the
  /// addition.
  std::size_t spare_block = 0;
  /// The index in the parameter vector at which the layer's parameters start, and their number.
  std::size_t parameters_start = 0;
  std::size_t parameters_size = 0;
  /// The prefix of the names of the layer's parameters: "layer3.conv2d".
  std::string name = {};
};

/// The operations, the values that they compute, and the memory of the derivatives.
template <class T>
class Plan {
 public:
  struct Value {
    Shape shape;
    /// The index of the block of memory that holds the value's derivative during the
    /// backward pass. Several values use a block in turn.
    std::size_t block = 0;
  };

  /// Plans a net for inputs of shape `input`. Errors name the layer by number and text, and the
  /// shapes that do not fit.
  static Result<Plan> make(const std::vector<ParsedLayer>& layers, const Shape& input);

  [[nodiscard]] const std::vector<Operation<T>>& operations() const { return operations_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  /// The size of each block: how many numbers it holds for one sample.
  [[nodiscard]] const std::vector<std::size_t>& block_sizes() const { return block_sizes_; }
  [[nodiscard]] const Shape& output() const { return values_.back().shape; }
  /// The parameters of all layers, in order.
  [[nodiscard]] std::vector<Parameter> parameters() const;

 private:
  class Builder;

  std::vector<Operation<T>> operations_;
  std::vector<Value> values_;
  std::vector<std::size_t> block_sizes_;
};

}  // namespace starling::models
