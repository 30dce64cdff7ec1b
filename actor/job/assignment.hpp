/// A job with everything that is needed to run it, so that the code that runs it need not know the
/// model's type.
#pragma once

#include <memory>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/exchange/applier.hpp"

namespace starling::actor {

/// A plain value.
struct Assignment {
  /// The job's options; a number of epochs over the data was converted to `steps`.
  JobOptions job;
  std::shared_ptr<Task> task;
  core::ApplierPtr applier;
  /// The state of each range when the job starts.
  std::vector<core::RangeState> initial_states;
  /// How the training data is dealt; `samples` is 0 if the job deals none.
  core::DealOptions deal = {};
};

}  // namespace starling::actor
