/// Has the nodes of a cluster start a job, whichever of them die meanwhile.
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
  /// The node that accepted the job in the end, to be asked first.
  std::string seed;
  std::string name;
};

/// Returns another name for a job whose name has been taken meanwhile; empty where the job is to
/// have no other.
using OtherName = std::function<std::string()>;

/// Submits a job and waits until it has begun, for as long as its nodes prepare it. Turns to
/// another node where the first no longer answers. Nothing where the program was interrupted: nodes
/// drop the job then. Where another job has its name, the job is submitted under what `other_name`
/// gives. An Error says which node refuses it and why, or that no node answers.
[[nodiscard]] Result<std::optional<Submitted>> submit_job(Access& access,
                                                          const wire::NodeStatus& node,
                                                          wire::JobSettings settings,
                                                          const OtherName& other_name);

}  // namespace starling::program
