/// A job whose work is known: what runs it need not know the model. A value; any thread.
#pragma once

#include <memory>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::actor {

/// All that a job's workers and owners need to know.
template <class T>
struct Assignment {
  /// The job's options, in which epochs are converted to steps.
  JobOptions job;
  std::shared_ptr<Task> task;
  core::Applier<T> applier;
  /// The state of each range when the job starts.
  std::vector<core::RangeState> start;
};

}  // namespace starling::actor
