#include "starling/tools/cluster/follow/job_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "starling/tools/program/time_text.hpp"

namespace starling::program {
namespace {

/// Returns the steps that all workers have made together, and those that they have to make. Returns
/// nothing if their number is not limited.
std::optional<std::pair<double, double>> steps_of_all(const JobSnapshot& job) {
  const core::Step last = job.last_step();
  const std::vector<core::Step> steps = job.steps();
  if (last == 0 || steps.empty()) return std::nullopt;
  double made = 0;
  for (const core::Step step : steps) made += static_cast<double>(std::min(step, last));
  return std::pair{made, static_cast<double>(steps.size()) * static_cast<double>(last)};
}

/// Returns the estimated seconds until the job reaches its time limit or its last step, whichever
/// comes first. Returns nothing if the job does not run, or if it has no time limit and its last
/// step or its speed is not known.
std::optional<double> seconds_left(const JobSnapshot& job, double worked_s) {
  if (job.state() != wire::JobState::running) return std::nullopt;
  std::optional<double> left;
  if (job.time_limit_ms > 0)
    left = std::max(0.0, static_cast<double>(job.time_limit_ms) / 1000 - worked_s);
  if (const auto steps = steps_of_all(job); steps && job.updates_per_s > 0)
    left = std::min(left.value_or(1e18), (steps->second - steps->first) / job.updates_per_s);
  return left;
}

}  // namespace

JobProgress progress_of(const JobSnapshot& job, std::int64_t now_ms) {
  JobProgress progress;
  if (job.state() == wire::JobState::preparing) return progress;
  if (const auto steps = job.steps(); !steps.empty()) progress.step = steps[steps.size() / 2];
  progress.data_epoch = job.data_epoch();
  const bool is_running = job.state() == wire::JobState::running;
  const double age_s =
      static_cast<double>(std::max<std::int64_t>(0, now_ms - job.started_ms)) / 1000;
  const double worked_s = is_running ? age_s : static_cast<double>(job.last_step_ms) / 1000;
  if (const auto steps = steps_of_all(job)) progress.done_share = steps->first / steps->second;
  if (job.time_limit_ms > 0)
    progress.done_share =
        std::max(progress.done_share.value_or(0),
                 std::min(1.0, 1000 * worked_s / static_cast<double>(job.time_limit_ms)));
  if (is_running)
    progress.updates_per_s = job.updates_per_s;
  else if (job.last_step_ms > 0)
    progress.updates_per_s =
        1000.0 * static_cast<double>(job.updates_made()) / static_cast<double>(job.last_step_ms);
  progress.remaining_s = seconds_left(job, worked_s);
  return progress;
}

std::string progress_text(const JobSnapshot& job, std::int64_t now_ms) {
  std::string text = print(job.state());
  if (const std::string why = job.failure_reason(); !why.empty()) text += ": " + why;
  if (job.state() == wire::JobState::preparing) return text;
  if (job.is_flow() && job.state() == wire::JobState::running && job.started_ms > 0)
    text +=
        " for " +
        time_text(static_cast<double>(std::max<std::int64_t>(0, now_ms - job.started_ms)) / 1000);
  if (job.is_flow()) return text;
  const JobProgress progress = progress_of(job, now_ms);
  if (progress.data_epoch) text += fmt::format(", epoch {:.1f}", *progress.data_epoch);
  text += fmt::format(", step {}", progress.step);
  if (job.last_step() > 0) text += fmt::format(" of {}", job.last_step());
  if (const auto loss = job.loss()) text += fmt::format(", loss {:.4g}", *loss);
  if (progress.updates_per_s) text += fmt::format(", {:.0f} updates/s", *progress.updates_per_s);
  if (progress.remaining_s) text += ", " + time_text(*progress.remaining_s) + " left";
  return text;
}

}  // namespace starling::program
