/// The commands of `starling` that act on a cluster. For each command, NAME_options() returns the
/// options that it has, and NAME_command() runs it and returns an exit code as
/// tools/train/commands.hpp describes.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

[[nodiscard]] const std::vector<KeyDescription>& node_options();
/// Includes the options of a job.
[[nodiscard]] const std::vector<KeyDescription>& submit_options();
[[nodiscard]] const std::vector<KeyDescription>& attach_options();
[[nodiscard]] const std::vector<KeyDescription>& status_options();
[[nodiscard]] const std::vector<KeyDescription>& jobs_options();
[[nodiscard]] const std::vector<KeyDescription>& stop_options();
[[nodiscard]] const std::vector<KeyDescription>& logs_options();
[[nodiscard]] const std::vector<KeyDescription>& leave_options();
[[nodiscard]] const std::vector<KeyDescription>& launch_options();

/// Runs a node until a signal arrives, until `leave` asks the node to leave, or until the cluster
/// refuses it. The node then hands over its ranges and leaves the cluster.
[[nodiscard]] Result<int> node_command(const Registry& registry, const Settings& settings);

/// Submits a job to the nodes of a cluster, follows it to its end, and saves its model as `train`
/// does.
[[nodiscard]] Result<int> submit_command(const Registry& registry, const Settings& settings,
                                         const std::string& job_file);

/// Follows a job in place of the `submit` command that started it, and saves its model. The job may
/// have ended already, if it is not closed yet. A signal ends this command, not the job.
[[nodiscard]] Result<int> attach_command(const Registry& registry, const Settings& settings);

/// Prints the nodes of a cluster and the jobs that they hold.
[[nodiscard]] Result<int> status_command(const Settings& settings);

/// Prints the jobs that nodes of a cluster hold, which may be preparing, running or ended, and the
/// jobs that were closed within the last day.
[[nodiscard]] Result<int> jobs_command(const Settings& settings);

/// Stops a job: each of its workers ends after its current step. A job that has not begun is closed
/// instead. With `--drop` any job is closed, and the nodes drop its model.
[[nodiscard]] Result<int> stop_command(const Settings& settings);

/// Prints the log lines of nodes.
[[nodiscard]] Result<int> logs_command(const Settings& settings);

/// Asks a node to hand over its ranges and to leave the cluster. Returns `done` once it has left,
/// and `job_failed` if it does not answer, is declared dead, or has not left after 35 s.
[[nodiscard]] Result<int> leave_command(const Settings& settings);

/// Starts the nodes of a hosts file on their machines over ssh. With `--stop`, ends them instead.
[[nodiscard]] Result<int> launch_command(const Settings& settings);

}  // namespace starling::program
