/// The layers that a net is made of: the closed set of names in a description. To add one, write
/// its file below layers/ and name it once in layers.cpp. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/layer.hpp"
#include "starling/models/net/shape.hpp"

namespace starling::models {

/// What a layer reads.
enum class Reads { anything, rows, images };

struct LayerName {
  std::string_view name;
  /// How it is written, and what it does.
  std::string_view form;
  std::string_view summary;
  Reads reads;
};

/// Every layer, in the order of the documentation; `residual` is Plan's business (plan.hpp).
[[nodiscard]] const std::vector<LayerName>& layer_names();

/// The layer that `spec` names, for inputs of that shape. Errors are led by the layer's name: an
/// unknown name or option, with the nearest valid one; an input that does not fit, with its shape
/// and what would.
template <class T>
[[nodiscard]] Result<LayerPointer<T>> make_layer(const Spec& spec, const Shape& input);

}  // namespace starling::models
