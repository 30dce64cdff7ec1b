/// Ids of nodes, and of the members and ranges of a job.
#pragma once

#include <chrono>
#include <cstdint>

#include "starling/barrier/rules/step.hpp"

namespace starling::core {

using barrier::Step;

/// Identifies a node, which is one process of a cluster. The id is drawn at random when the process
/// starts, and is never 0. A process that restarts is another node; the old node counts as dead.
using NodeId = std::uint64_t;
/// Identifies a member of a job. Ids are small numbers, because members are indexed by them.
using MemberId = std::uint32_t;
/// Identifies an owner of ranges by its MemberId; in assign_ranges() and the simulator, by its
/// place among the owners, counted from 0.
using OwnerId = std::uint32_t;
/// Identifies a range of the parameter vector. Ranges and their ids never change within a job.
using RangeId = std::uint32_t;
/// Numbers the incarnations of a member: each restart has a higher number than the one before.
using Incarnation = std::uint32_t;
/// Numbers the configurations of a job. A job in one process has one configuration.
using Epoch = std::uint64_t;
/// The time since the job started. A core reads no clock: its driver (effect.hpp) passes the time.
using Time = std::chrono::nanoseconds;

}  // namespace starling::core
