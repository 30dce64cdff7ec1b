/// Chooses the text of a job's model by the job's data. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns the text of the default model for the data; empty if the data is of a user's own type.
/// `source` is the source of the data, as `--data` has it.
[[nodiscard]] std::string default_model(const Registry& registry, const std::string& source,
                                        const AnyData& data);

/// Returns the text of the model of a job: `text`, or if that is empty, the default model of the
/// data. If the model is mf without the numbers of users and items, and the data is divided from
/// one source, adds the numbers that suit both parts: an id may occur in the test data only.
[[nodiscard]] std::string complete_model(const Registry& registry, std::string text,
                                         const DataRequest& request, const TrainAndTest& data,
                                         std::optional<ElementType> type);

}  // namespace starling::program
