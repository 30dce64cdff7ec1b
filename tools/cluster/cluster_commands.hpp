/// The program's commands for a cluster, one function each; see commands.hpp.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

[[nodiscard]] const std::vector<KeyForm>& node_options();
/// The keys of a job, and of the cluster that it is submitted to.
[[nodiscard]] const std::vector<KeyForm>& submit_options();
[[nodiscard]] const std::vector<KeyForm>& attach_options();
[[nodiscard]] const std::vector<KeyForm>& status_options();
[[nodiscard]] const std::vector<KeyForm>& jobs_options();
[[nodiscard]] const std::vector<KeyForm>& stop_options();
[[nodiscard]] const std::vector<KeyForm>& logs_options();
[[nodiscard]] const std::vector<KeyForm>& leave_options();
[[nodiscard]] const std::vector<KeyForm>& launch_keys();

/// Runs a node until a signal: then it hands over what it owns and leaves.
[[nodiscard]] Result<int> node_command(const Registry& registry, const Settings& settings);

/// Has a cluster's nodes train, follows them, and ends with the model, as train does.
[[nodiscard]] Result<int> submit_command(const Registry& registry, const Settings& settings,
                                         const std::string& job_file);

/// Follows a running job in place of the submit that began it, and saves its model. A signal ends
/// this command, not the job.
[[nodiscard]] Result<int> attach_command(const Registry& registry, const Settings& settings);

/// Prints the nodes and jobs of a cluster.
[[nodiscard]] Result<int> status_command(const Settings& settings);

/// Prints the jobs of a cluster that run, and those that have ended within a day.
[[nodiscard]] Result<int> jobs_command(const Settings& settings);

/// Ends a job at the end of its workers' steps.
[[nodiscard]] Result<int> stop_command(const Settings& settings);

/// Prints the log lines of nodes.
[[nodiscard]] Result<int> logs_command(const Settings& settings);

/// Has a node hand over what it owns and leave; returns once it has left.
[[nodiscard]] Result<int> leave_command(const Settings& settings);

/// Starts nodes on other machines over ssh.
[[nodiscard]] Result<int> launch_command(const Settings& settings);

}  // namespace starling::program
