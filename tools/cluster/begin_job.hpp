/// Begins a job on a cluster, for all commands that submit jobs: looks at the cluster, chooses the
/// job's name, and submits the job. Blocking.
#pragma once

#include <optional>
#include <string>

#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/submitter.hpp"

namespace starling::program {

/// Returns the description of the option `detach`.
[[nodiscard]] KeyDescription detach_key(const char* group);

/// A cluster to which a job is to be submitted.
struct JobTarget {
  /// The status of the seed node.
  wire::NodeStatus node;
  ClusterSnapshot snapshot;
};
/// Asks the seed node, and then the others, for their status. If the seed node does not answer,
/// prints the error and returns nothing. Returns an Error if the setting `name` is the name of a
/// job that nodes hold, in any state.
[[nodiscard]] Result<std::optional<JobTarget>> find_target(Access& access,
                                                           const Settings& settings);

struct BeginOptions {
  /// The name that the user gave the job; if it is empty, begin_job() chooses one.
  std::string name;
  /// True if no program follows the job: then begin_job() prints the name of the job on stdout.
  bool must_detach = false;
  /// True if begin_job() prints that name as a JSON object.
  bool is_json = false;
  /// True if begin_job() shows nothing when a job begins that a program follows.
  bool is_quiet = false;
};
struct BegunJob {
  /// The job, which has begun and which the caller must follow; null if there is none to follow.
  std::optional<SubmittedJob> job;
  /// The exit code if `job` is null.
  int code = 0;
};
/// Submits a job under its name, and waits until it has begun. `access` then has the node that
/// accepted the job as its seed node. `settings` are those that nodes receive; they lack `name` if
/// `options.name` is empty. Prints errors. Requires: a GracefulStop exists.
[[nodiscard]] Result<BegunJob> begin_job(Access& access, const JobTarget& target,
                                         wire::JobSettings settings, const BeginOptions& options);

}  // namespace starling::program
