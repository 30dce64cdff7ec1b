/// Has the nodes of a cluster start a job, whichever of them die meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/app/cluster/access.hpp"

namespace starling::app {

/// A job that has begun.
struct Submitted {
  wire::JobId job = 0;
  /// Where it was submitted in the end, and whom to ask first.
  std::string seed;
  std::string name;
};

/// Another name for a job whose name has been taken meanwhile; empty where there is to be none.
using OtherName = std::function<std::string()>;

/// Waits until it has begun, for as long as its nodes prepare it. Where the node that was asked
/// does not answer any more another one is. Nothing where the program was interrupted: the job is
/// dropped then. Where another job has its name it is submitted under what `other_name` gives. An
/// Error says who refuses it and why, or that nobody answers.
[[nodiscard]] Result<std::optional<Submitted>> submit_job(Access& access,
                                                          const wire::NodeStatus& node,
                                                          wire::JobSettings settings,
                                                          const OtherName& other_name);

}  // namespace starling::app
