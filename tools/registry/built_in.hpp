/// The models and data sources that every program contains without registering them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Adds the built-in models in float32 and float64, and the safetensors data source, to the entries
/// that a user's program has registered.
[[nodiscard]] Registry with_built_in(Registry registry);

/// Makes the model that `text` describes, for `data`. `type` chooses the element type; without it,
/// the first registered model of that name is taken. Returns an Error for an unknown name (with the
/// most similar valid one), for a bad option, and for data of a type from which the model cannot
/// learn.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> make_model(
    const Registry& registry, const std::string& text, const AnyData& data,
    std::optional<ElementType> type = {});

/// Returns an Error if the model refuses `data`, on which it is to be tested or is to predict, or
/// if the rows of `data` have another form or other features than those of its training data, which
/// a model of a user's need not check. `shape` is the table of the training data, with or without
/// rows; null if the training data is not a table.
[[nodiscard]] Result<void> accepts_test_data(const AnyModel& model, const models::Table* shape,
                                             const AnyData& data);

/// Returns the names of the models that learn from data of this type.
[[nodiscard]] std::vector<std::string> models_for(const Registry& registry, const AnyData& data);

/// Adds the built-in models with elements of type T, float or double. Only with_built_in() calls
/// it.
template <class T>
void add_models(Registry& registry);

}  // namespace starling::program
