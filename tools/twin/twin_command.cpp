#include <chrono>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/job/model_selection.hpp"
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

/// Removes the hints to use the flag --level from an error of the simulation, because this command
/// does not have that flag.
Error without_level(Error error) {
  for (const std::string_view hint : {"--level protocol, or ", "--level protocol, "})
    if (const auto at = error.message.find(hint); at != std::string::npos)
      error.message.erase(at, hint.size());
  return error;
}

/// Returns the job to simulate. adopt_live_run() sets its end later.
Result<SimJob> make_simulation(const Settings& settings, const Registry& registry) {
  for (const Setting& setting : settings)
    if (setting.key == "batch" && setting.text.starts_with("dynamic"))
      return Error{setting.location +
                   ": simulated steps have no samples, so their times do not follow the sizes of "
                   "batches; valid: a whole number"};
  if (is_exchange_barrier(settings))
    return Error{
        location_of(settings, "exchange") + ": " + text_of(settings, "exchange") +
        ": is itself the barrier, which simulated steps do not have; valid: owners, gossip "
        "and others at which workers do not wait for each other"};
  auto job = make_sim_job(sim_settings(settings), registry, true);
  if (!job) return without_level(std::move(job).error());
  if (!job->delay)
    return Error{
        "the job has no delay, which is the time of a simulated step; valid: "
        "--delay exp:20ms, or another distribution"};
  if (*job->delay == Distribution{})
    return Error{
        location_of(settings, "delay") +
        ": is the time of a simulated step, and must not be 0; valid: exp:20ms and the like"};
  if (const auto location = location_of(settings, "resume"); !location.empty())
    return Error{location + ": a simulation begins at step 0; valid: a job from its start"};
  const std::string seeds = location_of(settings, "seeds");
  if (seeds.empty()) job->seeds = twin_seeds;
  if (job->seeds < twin_seeds_min)
    return Error{seeds + ": " + print_count(job->seeds, "simulation") +
                 " are too few for the quantiles; valid: " + std::to_string(twin_seeds_min) +
                 " or more"};
  return job;
}

/// Runs the live job. Returns its outcome, or an Error if it could not be started.
Result<actor::Outcome> run_live(const PreparedRun& ready) {
  const GracefulStop graceful{ready.job.quiet ? nullptr : stop_message};
  Display display{ready.job.quiet};
  auto options = ready.resolved.options;
  options.job.on_progress = [&](const actor::Progress& progress) {
    display.show(progress_line(ready.resolved, progress));
    return !is_interrupted();
  };
  options.job.evaluate_train = false;
  const std::size_t patience = ready.job.patience;
  if (!options.job.until && patience == 0) options.job.evaluate_every = 0;
  ModelSelection selection{patience, false};
  if (patience > 0)
    options.job.on_evaluated = [&](const actor::Progress& progress, const auto& states) {
      selection.add_evaluation(progress.evaluated_at, progress.test, states);
      return !selection.is_patience_over();
    };
  return ready.model->train(ready.data.train, ready.test(), options);
}

/// Simulates the job once under each seed.
std::vector<RunFigures> simulate_twins(const SimJob& job) {
  std::vector<RunFigures> runs(job.seeds);
  for_each_piece(
      runs.size(), threads_of(job),
      [&](std::size_t i) { runs[i] = simulate_twin(run_options(job, 0, job.options.seed + i)); },
      [] {});
  return runs;
}

/// Makes the simulations end like the live run, after its steps or after its time. Adds to each
/// simulated step the mean time that a step of the live run took beyond its delay.
void adopt_live_run(SimJob& job, const actor::JobOptions& options, const actor::Outcome& outcome) {
  using std::chrono::milliseconds;
  const bool completed = outcome.end == actor::Outcome::End::completed;
  job.options.steps_max = options.steps;
  job.options.horizon = completed ? core::Time{std::chrono::hours{24 * 365}}
                                  : std::chrono::ceil<milliseconds>(outcome.last.elapsed);
  job.options.overhead = outcome.last.mean_work_time;
  job.options.points = 1;
}

}  // namespace

Result<int> twin_command(const Registry& registry, const Settings& settings,
                         const std::string& job_file) {
  auto job = make_simulation(settings, registry);
  if (!job) return std::move(job).error();
  auto ready = prepare(registry, live_settings(settings), job_file);
  if (!ready) return std::move(ready).error();
  if (!ready->resume_note.empty()) print_error(ready->resume_note);
  const auto outcome = run_live(*ready);
  if (!outcome) return add_location(outcome.error(), settings);
  if (is_interrupted()) return interrupted_code;
  if (outcome->end == actor::Outcome::End::failed) {
    print_error(outcome->error);
    return job_failed;
  }
  TwinReport report{.job = *job,
                    .completed = outcome->end == actor::Outcome::End::completed,
                    .live = figures_of(outcome->last),
                    .figures = {}};
  adopt_live_run(*job, ready->resolved.options.job, *outcome);
  report.figures = compare(report.live, simulate_twins(*job), report.completed);
  return write_stdout(job->json ? twin_json(report) + "\n" : twin_table(report),
                      do_all_agree(report) ? done : job_failed);
}

}  // namespace starling::program
