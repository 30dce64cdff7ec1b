/// Names for the members of a job. All are dense numbers from 0, given when the job starts.
#pragma once

#include <chrono>
#include <cstdint>

#include "starling/barrier/step.hpp"

namespace starling::core {

using barrier::Step;

/// One worker of the job.
using WorkerId = std::uint32_t;
/// One owner of ranges: a server shard, or in peer mode the peer with the same number as its
/// worker.
using OwnerId = std::uint32_t;
/// One range of the parameter vector; never changes while the job exists.
using RangeId = std::uint32_t;
/// Distinguishes the lives of a worker that was replaced by a new one.
using Incarnation = std::uint32_t;
/// Counts configurations (configuration.hpp); 0 where owners never change.
using Epoch = std::uint64_t;
/// Time since the job started, handed in by whoever drives a core.
using Time = std::chrono::nanoseconds;

}  // namespace starling::core
