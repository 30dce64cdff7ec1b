/// The settings of a flow: the flags of `run NAME` and of `submit --flow NAME`, and what they mean.
/// Pure functions; thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns the flags of `run` that all flows have, followed by those of `flow`.
[[nodiscard]] std::vector<KeyDescription> flags_of_flow(const FlowEntry& flow);
/// Returns the flags of `submit --flow` that all flows have, followed by those of `flow`, but not
/// those of the connection.
[[nodiscard]] std::vector<KeyDescription> flags_of_submitted_flow(const FlowEntry& flow);

/// Returns the flow's own options as they were given.
[[nodiscard]] Spec arguments_of(const FlowEntry& flow, const Settings& settings);
/// Returns the files to read; an Error if there is none.
[[nodiscard]] Result<std::vector<std::string>> input_files(const FlowEntry& flow,
                                                           const Settings& settings);
/// Returns the files that the flow reads: `inputs`, and those that its own options name.
[[nodiscard]] std::vector<std::string> files_read(const FlowEntry& flow, const Settings& settings,
                                                  std::vector<std::string> inputs);
/// Returns how many lines are shown at most without --output.
[[nodiscard]] Result<std::uint64_t> lines_max_of(const Settings& settings);
/// Returns the options of the engine. `threads_key` is the setting that holds the number of its
/// threads: `workers` for `run`, whose workers are threads of one process, and `threads` for
/// `submit --flow`, whose workers are members with threads of their own. `threads` is the default.
[[nodiscard]] Result<flow::MapReduceOptions> engine_options(const Settings& settings,
                                                            const std::string& threads_key,
                                                            std::uint64_t threads);

/// A flow that runs on the nodes of a cluster.
struct SubmittedFlow {
  FlowEntry flow;
  Spec spec;
  std::vector<std::string> inputs;
  /// The folder of the result; empty if only its first lines are kept.
  std::string output;
  /// The most lines of the result that are shown if `output` is empty.
  std::uint64_t lines_max = 0;
  /// The number of members that run the flow.
  std::uint64_t workers = 4;
  flow::MapReduceOptions engine;
  /// How long the job waits for nodes that it cannot go on without.
  std::chrono::nanoseconds wait_for_nodes{};
};
/// Reads the settings of a flow that was submitted. Returns an Error if one is not valid, but opens
/// no file. Requires: each setting's key is one of flags_of_submitted_flow().
[[nodiscard]] Result<SubmittedFlow> read_submitted_flow(const FlowEntry& flow,
                                                        const Settings& settings,
                                                        const Registry& registry);

}  // namespace starling::program
