/// Ids of nodes, and of the members and ranges of a job.
#pragma once

#include <chrono>
#include <cstdint>

#include "starling/barrier/rules/step.hpp"

namespace starling::core {

using barrier::Step;

/// One incarnation of one process of a cluster: drawn at random when the process starts, never 0. A
/// process that restarts is another node, and the old one is dead.
using NodeId = std::uint64_t;
/// One member of the job; a dense number from 0, given when the member is made.
using MemberId = std::uint32_t;
/// One owner of ranges: a server shard, or in peer mode the peer with the same number as its
/// worker.
using OwnerId = std::uint32_t;
/// One range of the parameter vector; never changes while the job exists.
using RangeId = std::uint32_t;
/// Distinguishes the incarnations of a member; the one that replaces another is higher.
using Incarnation = std::uint32_t;
/// Counts configurations (configuration.hpp); 0 where owners never change.
using Epoch = std::uint64_t;
/// Time since the job started, as the core's driver passes it.
using Time = std::chrono::nanoseconds;

}  // namespace starling::core
