#include "starling/tools/cluster/follow/job_progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "starling/tools/program/time_text.hpp"

namespace starling::program {
namespace {

/// Returns the estimated seconds until the job reaches its time limit or its last step, whichever
/// comes first. Returns nothing if the job does not run, or if it has no time limit and its last
/// step or its speed is not known.
std::optional<double> seconds_left(const JobSnapshot& job, const JobProgress& progress,
                                   double worked_s) {
  if (job.state() != wire::JobState::running) return std::nullopt;
  std::optional<double> left;
  if (job.time_limit_ms > 0)
    left = std::max(0.0, static_cast<double>(job.time_limit_ms) / 1000 - worked_s);
  const double workers = static_cast<double>(job.steps().size());
  if (job.last_step() > 0 && job.updates_per_s > 0 && workers > 0) {
    const auto steps_left = job.last_step() - std::min(job.last_step(), progress.step);
    left = std::min(left.value_or(1e18),
                    static_cast<double>(steps_left) * workers / job.updates_per_s);
  }
  return left;
}

}  // namespace

JobProgress progress_of(const JobSnapshot& job, std::int64_t now_ms) {
  JobProgress progress;
  if (job.state() == wire::JobState::preparing) return progress;
  if (const auto steps = job.steps(); !steps.empty()) progress.step = steps[steps.size() / 2];
  const auto step = static_cast<double>(progress.step);
  progress.data_epoch = job.data_epoch();
  const bool is_running = job.state() == wire::JobState::running;
  const double age_s =
      static_cast<double>(std::max<std::int64_t>(0, now_ms - job.started_ms)) / 1000;
  const double worked_s = is_running ? age_s : static_cast<double>(job.last_step_ms) / 1000;
  if (job.last_step() > 0) progress.done_share = step / static_cast<double>(job.last_step());
  if (job.time_limit_ms > 0)
    progress.done_share =
        std::max(progress.done_share.value_or(0),
                 std::min(1.0, 1000 * worked_s / static_cast<double>(job.time_limit_ms)));
  if (is_running)
    progress.updates_per_s = job.updates_per_s;
  else if (job.last_step_ms > 0)
    progress.updates_per_s =
        1000.0 * static_cast<double>(job.updates_made()) / static_cast<double>(job.last_step_ms);
  progress.remaining_s = seconds_left(job, progress, worked_s);
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
