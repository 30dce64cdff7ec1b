/// `--init`: a saved model that a job begins with. Blocking.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/model_file.hpp"

namespace starling::program {

/// Reads the model of `job.init`, and takes over what the job does not set: the model, its element
/// type and how data are scaled. Refuses a job that sets another element type or scale.
[[nodiscard]] Result<StoredModel> read_init(Job& job);

/// Refuses a table whose features, columns or labels are not those that the stored model was
/// trained on.
[[nodiscard]] Result<void> check_shape(const StoredModel& stored, const models::Table& table);

/// Refuses a model other than the stored one, and data whose features or labels are not those that
/// it was trained on.
[[nodiscard]] Result<void> check_init(const StoredModel& stored, const AnyModel& model,
                                      const AnyData& train);

/// The data as those that the stored model was trained on were scaled. Requires: check_init().
[[nodiscard]] Result<TrainAndTest> scaled_as_init(const StoredModel& stored, TrainAndTest data);

/// The stored parameters, as a job of these options begins with them.
[[nodiscard]] Result<std::vector<core::RangeState>> first_states(const StoredModel& stored,
                                                                 const AnyModel& model,
                                                                 const actor::JobOptions& options);

}  // namespace starling::program
