/// A node's part of a job that runs a flow: its members, each of which runs the program on a thread
/// of its own, and the threads that compute parts for them.
#pragma once

#include <functional>
#include <memory>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/flow/map_reduce.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::actor {

/// A program of data sets. Every member of the job calls it once, with an engine whose actions all
/// members run together, so it must begin the same actions everywhere. It returns an Error if an
/// action does.
using FlowProgram = std::function<Result<wire::FlowResult>(const flow::MapReduce& engine)>;

struct FlowJobOptions {
  FlowProgram program;
  /// The number of members that compute parts; others run the program too.
  std::size_t workers = 1;
  /// `threads` is the number of parts that each member computes at a time. `on_progress`, `on_task`
  /// and `is_stopped` are not used.
  flow::MapReduceOptions engine;
  /// A node that cannot reach a majority of the others gives the job up after this time.
  core::Time wait_for_nodes{};
};

/// Makes this node's part of a job, without members yet. Returns an Error if an option is not
/// valid.
[[nodiscard]] Result<std::unique_ptr<LocalJob>> make_flow_job(FlowJobOptions options,
                                                              LocalJobOptions local);

}  // namespace starling::actor
