/// Gives map-reduce programs the data sources of a program's registry, and its saved models.
///
/// ```cpp
/// const auto registry = program::with_built_in(std::move(own_registry));
/// const auto samples = program::flow_samples(engine, registry, "safetensors:digits.safetensors");
/// const auto predictor = program::load_predictor(registry, "model.safetensors");
/// auto predicted = flow::predict(*samples, *predictor);
/// ```
///
/// Blocking. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "starling/actor/flow/predictor.hpp"
#include "starling/actor/flow/samples.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/model_file.hpp"

namespace starling::program {

/// Returns the samples of any source that `--data` names, those of the registry included. The
/// whole source is loaded into memory. A generator draws the samples of `seed`. An Error says why
/// the source cannot be loaded, that it is sparse, or that its data is no table.
[[nodiscard]] Result<flow::Set<flow::Sample>> flow_samples(const flow::MapReduce& engine,
                                                           const Registry& registry,
                                                           const std::string& source,
                                                           std::uint64_t seed = 1);

/// Returns the model of a file that `--save` has written. It scales samples as its training data
/// was scaled. An Error says why the file cannot be used, or that its model does not predict
/// samples.
[[nodiscard]] Result<flow::Predictor> load_predictor(const Registry& registry,
                                                     const std::string& path,
                                                     Trust trust = Trust::checked);

}  // namespace starling::program
