/// `--init`: begins a job with the parameters of a saved model. Blocking.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/model_file.hpp"

namespace starling::program {

/// Reads the model file `job.init`. Sets the job's model, element type and scaling method to those
/// of the file if the job does not set them. Refuses a job that sets another element type or
/// method.
[[nodiscard]] Result<StoredModel> read_init(Job& job);

/// Refuses a table whose features, columns or labels differ from those of the stored model's
/// training data.
[[nodiscard]] Result<void> check_shape(const StoredModel& stored, const models::Table& table);

/// Refuses a model other than the stored one, and training data that check_shape() refuses.
[[nodiscard]] Result<void> check_init(const StoredModel& stored, const AnyModel& model,
                                      const AnyData& train);

/// Scales the data in the same way as the stored model's training data. Requires: check_init() has
/// accepted the data.
[[nodiscard]] Result<TrainAndTest> scale_like_stored(const StoredModel& stored, TrainAndTest data);

/// Returns the initial states of all ranges of a job with these options, with the stored parameters
/// as values.
[[nodiscard]] Result<std::vector<core::RangeState>> initial_states(
    const StoredModel& stored, const AnyModel& model, const actor::JobOptions& options);

}  // namespace starling::program
