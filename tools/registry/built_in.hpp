/// The models and data sources that every program contains without registering them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns `own` with the built-in models in float32 and float64 and the safetensors data source
/// added.
[[nodiscard]] Registry with_built_in(Registry own);

/// Makes the model that `text` describes for `data`, with elements of `type` if one is given. Fails
/// for an unknown name (the error has the nearest valid one), a bad option, and data of a type from
/// which the model cannot learn.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> make_model(
    const Registry& registry, const std::string& text, const AnyData& data,
    std::optional<ElementType> type = {});

/// Returns the names of the models that learn from data of this type.
[[nodiscard]] std::vector<std::string> models_for(const Registry& registry, const AnyData& data);

/// Adds the built-in models of float or double. Internal.
template <class T>
void add_models(Registry& registry);

}  // namespace starling::program
