/// Submits a job to the nodes of a cluster, some of which may die meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

/// A job that has begun.
struct Submitted {
  wire::JobId job = 0;
  /// The address of the node that accepted the job, which its follower asks first.
  std::string seed;
  std::string name;
};

/// Returns a new name for a job whose name another job has taken meanwhile; empty if the job has to
/// keep its name.
using NameGenerator = std::function<std::string()>;

/// Submits a job and waits until it has begun, for as long as its nodes prepare it. If a node no
/// longer answers, submits the job to another one. If another job has its name, submits the job
/// under the name that `new_name` returns. Returns nothing if the program was interrupted: nodes
/// drop the job then. An Error says which node refuses it and why, or that no node answers.
[[nodiscard]] Result<std::optional<Submitted>> submit_job(Access& access,
                                                          const wire::NodeStatus& node,
                                                          wire::JobSettings settings,
                                                          const NameGenerator& new_name);

}  // namespace starling::program
