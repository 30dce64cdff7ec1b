/// Submits a job to a cluster whose nodes may die meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

/// A job that has begun on the nodes.
struct SubmittedJob {
  wire::JobId job = 0;
  /// The address of the node that accepted the job, which its follower asks first.
  std::string seed;
  std::string name;
};

/// Returns a new name for a job whose name another job has taken meanwhile; empty if the user chose
/// the job's name, which then must not change.
using NameGenerator = std::function<std::string()>;

/// Submits a job to the seed node of `access`, whose status is `node`, and waits until all nodes
/// have prepared the job and it has begun. If the seed node no longer answers, submits the job to
/// another node. If another job has the same name, submits the job under the name that `new_name`
/// returns. If the program is interrupted, asks the nodes to drop the job and returns nothing. An
/// Error says which node refuses the job and why, or that no node answers.
[[nodiscard]] Result<std::optional<SubmittedJob>> submit_job(Access& access,
                                                             const wire::NodeStatus& node,
                                                             wire::JobSettings settings,
                                                             const NameGenerator& new_name);

}  // namespace starling::program
