/// The layers that a net can contain: the closed set of names in a description. To add a layer,
/// write its file below layers/ and name it once in layers.cpp. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/layers/layer.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// The inputs that a layer accepts.
enum class Reads { anything, rows, images };

struct LayerName {
  std::string_view name;
  /// The layer's grammar; `summary` says what the layer does.
  std::string_view form;
  std::string_view summary;
  Reads reads;
};

/// Returns every layer, in the order of the documentation. Plan handles `residual` itself
/// (plan.hpp).
[[nodiscard]] const std::vector<LayerName>& layer_names();

/// Returns the layer that `spec` names, for inputs of shape `input`. Errors begin with the layer's
/// name: an unknown name or option, with the nearest valid one; an input that does not fit, with
/// its shape and a shape that would.
template <class T>
[[nodiscard]] Result<LayerPointer<T>> make_layer(const Spec& spec, const Shape& input);

}  // namespace starling::models
