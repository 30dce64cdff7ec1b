/// How a net is computed: its layers in order, and which values and derivatives share memory. An
/// immutable value; any thread may read it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/layers/layer.hpp"

namespace starling::models {

/// Values are numbered: 0 is the net's input, and each step makes one more.
template <class T>
struct PlanStep {
  /// Null for a sum of values of one shape.
  LayerPointer<T> layer;
  /// The value or values that the step reads.
  std::vector<std::size_t> from;
  std::size_t to = 0;
  /// True where the value `to` takes the memory of from[0], and their derivatives share memory too.
  bool in_place = false;
  /// For each value of `from`: whether a later step has already left a derivative by it, to which
  /// this step adds its own.
  std::vector<bool> adds = {};
  /// The slot of a derivative that is computed apart and then added.
  std::size_t spare_slot = 0;
  /// The place of the layer's parameters in the parameter vector.
  std::size_t start = 0;
  std::size_t size = 0;
  /// The prefix of the names of the layer's parameters: "layer3.conv2d".
  std::string name = {};
};

template <class T>
class Plan {
 public:
  struct Value {
    Shape shape;
    /// The slot that holds the value's derivative during the backward pass; a slot serves one value
    /// after another.
    std::size_t slot = 0;
  };

  /// Errors name the layer by number and text, and the shapes that do not fit.
  static Result<Plan> make(const std::vector<LayerText>& layers, const Shape& input);

  [[nodiscard]] const std::vector<PlanStep<T>>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  /// The numbers that each slot holds for one sample.
  [[nodiscard]] const std::vector<std::size_t>& slots() const { return slots_; }
  [[nodiscard]] const Shape& output() const { return values_.back().shape; }
  /// The parameters of all layers, in order.
  [[nodiscard]] std::vector<Parameter> parameters() const;

 private:
  class Builder;

  std::vector<PlanStep<T>> steps_;
  std::vector<Value> values_;
  std::vector<std::size_t> slots_;
};

}  // namespace starling::models
