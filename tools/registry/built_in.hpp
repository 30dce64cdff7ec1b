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

/// The model that `text` names, shaped for `data`; an entry of `type` where one is asked for.
/// Errors: an unknown name (with the nearest valid one), a bad option, data it cannot learn from.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> make_model(
    const Registry& registry, const std::string& text, const AnyData& data,
    std::optional<ElementType> type = {});

/// The names of the models that learn from data of this type, whatever their options.
[[nodiscard]] std::vector<std::string> models_for(const Registry& registry, const AnyData& data);

/// Internal, for float and double.
template <class T>
void add_models(Registry& registry);

}  // namespace starling::program
