/// Ids of nodes, and of the members and ranges of a job.
#pragma once

#include <chrono>
#include <cstdint>

#include "starling/barrier/rules/step.hpp"

namespace starling::core {

using barrier::Step;

/// One process of a cluster: drawn at random when the process starts, never 0. A process that
/// restarts is another node; the old node counts as dead.
using NodeId = std::uint64_t;
/// One member of the job: a dense number, counted from 0.
using MemberId = std::uint32_t;
/// One owner of ranges: the owner's MemberId. Where only owners are considered (assign_ranges(),
/// the simulator), they are counted from 0.
using OwnerId = std::uint32_t;
/// One range of the parameter vector. Ranges and their ids never change within a job.
using RangeId = std::uint32_t;
/// Numbers the incarnations of a member: each restart has a higher number than the one before.
using Incarnation = std::uint32_t;
/// Numbers the configurations of a job. A job in one process has one configuration.
using Epoch = std::uint64_t;
/// The time since the job started. A core reads no clock: its driver (effect.hpp) passes the time.
using Time = std::chrono::nanoseconds;

}  // namespace starling::core
