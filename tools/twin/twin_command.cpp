#include <chrono>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/parallel.hpp"
#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"
#include "starling/tools/train/report.hpp"
#include "starling/tools/twin/twin_keys.hpp"
#include "starling/tools/twin/twin_report.hpp"

namespace starling::program {
namespace {

/// Returns the job as it is simulated, but for its end.
Result<SimJob> simulation_of(const Settings& settings, const Registry& registry) {
  auto job = make_sim_job(sim_settings(settings), registry, true);
  if (!job) return job;
  if (!job->delay)
    return Error{
        "the job has no delay, and a simulated step takes as long as that; valid: with "
        "--delay exp:20ms, or another law"};
  if (*job->delay == Distribution{})
    return Error{place_of(settings, "delay") +
                 ": is what a simulated step takes; valid: exp:20ms and the like"};
  if (const auto place = place_of(settings, "resume"); !place.empty())
    return Error{place + ": a simulation begins at step 0; valid: a job from its start"};
  const std::string seeds = place_of(settings, "seeds");
  if (seeds.empty()) job->seeds = twin_seeds;
  if (job->seeds < twin_seeds_min)
    return Error{seeds + ": of " + counted(job->seeds, "simulation") +
                 " no quantiles can be had; valid: " + std::to_string(twin_seeds_min) + " or more"};
  return job;
}

/// Runs the real job, with its figures at the end; an error where it failed.
Result<actor::Outcome> run_live(const Prepared& ready) {
  const OrderlyStop orderly{ready.job.quiet ? nullptr : stops_plainly};
  Display display{ready.job.quiet};
  auto options = ready.running.options;
  options.job.on_progress = [&](const actor::Progress& progress) {
    display.show(progress_line(ready.running, progress));
    return !is_interrupted();
  };
  options.job.evaluate_train = false;
  if (!options.job.until) options.job.evaluate_every = 0;
  return ready.model->train(ready.data.train, ready.test(), options);
}

std::vector<TwinRun> simulate_all(const SimJob& job) {
  std::vector<TwinRun> runs(job.seeds);
  for_each_piece(
      runs.size(), threads_of(job),
      [&](std::size_t i) { runs[i] = simulate_twin(run_options(job, 0, job.options.seed + i)); },
      [] {});
  return runs;
}

/// Gives the simulations the live run's end, by its steps or by its time, and the time that a step
/// of it took beyond its delay.
void liken(SimJob& job, const actor::JobOptions& options, const actor::Outcome& outcome) {
  using std::chrono::milliseconds;
  const bool completed = outcome.end == actor::Outcome::End::completed;
  job.options.last = options.steps;
  job.options.horizon = completed ? core::Time{std::chrono::hours{24 * 365}}
                                  : std::chrono::ceil<milliseconds>(outcome.last.elapsed);
  job.options.overhead = outcome.last.overhead;
  job.options.points = 1;
}

}  // namespace

Result<int> twin_command(const Registry& registry, const Settings& settings,
                         const std::string& job_file) {
  auto job = simulation_of(settings, registry);
  if (!job) return std::move(job).error();
  auto ready = prepare(registry, live_settings(settings), job_file);
  if (!ready) return std::move(ready).error();
  const auto outcome = run_live(*ready);
  if (!outcome) return placed(outcome.error(), settings);
  if (is_interrupted()) return interrupted_code;
  if (outcome->end == actor::Outcome::End::failed) {
    print_error(outcome->error);
    return job_failed;
  }
  Twins twins{.job = *job,
              .completed = outcome->end == actor::Outcome::End::completed,
              .live = figures_of(outcome->last),
              .compared = {}};
  liken(*job, ready->running.options.job, *outcome);
  twins.compared = compare(twins.live, simulate_all(*job), twins.completed);
  return write_stdout(job->json ? twin_json(twins) + "\n" : twin_table(twins),
                      agree(twins) ? done : job_failed);
}

}  // namespace starling::program
