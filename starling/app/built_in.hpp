/// What the program contains without anyone's doing.
#pragma once

#include <memory>
#include <string>

#include "starling/app/contents.hpp"

namespace starling::app {

/// `own`, then the built-in models in float32 and float64.
[[nodiscard]] Contents with_built_in(Contents own);

/// The model that `text` names, shaped for `data`; an entry of `type` where one is asked for.
/// Errors: an unknown name (with the nearest valid one), a bad option, data it cannot learn from.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> make_model(const Contents& contents,
                                                                 const std::string& text,
                                                                 const AnyData& data,
                                                                 std::optional<ElementType> type);

/// Internal: one file each, for they take long to compile.
void add_float_models(Contents& contents);
void add_double_models(Contents& contents);

}  // namespace starling::app
