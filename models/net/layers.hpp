/// The kinds of layer that a net can contain. To add one, write a file in layers/ and add it to the
/// list in layers.cpp. Thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/layers/layer.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// The inputs that a kind of layer accepts.
enum class InputKind { any, row, image };

struct LayerKind {
  std::string_view name;
  /// The layer with its options: "dropout RATE".
  std::string_view usage;
  /// A phrase that says what the layer does.
  std::string_view summary;
  InputKind input;
};

/// Returns every kind of layer in the order of the documentation, except `residual`, which is no
/// layer of its own: Plan (plan.hpp) adds the outputs of its branches.
[[nodiscard]] const std::vector<LayerKind>& layer_kinds();

/// Returns the layer that `spec` names, for inputs of shape `input`. Refuses an unknown name or
/// option and suggests the nearest valid one; refuses an input that does not fit and names a shape
/// that would fit.
template <class T>
[[nodiscard]] Result<LayerPointer<T>> make_layer(const Spec& spec, const Shape& input);

}  // namespace starling::models
