#include "starling/tools/repro/barriers/study.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/random.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/tools/sim/run_display.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t live_workers = 4;
constexpr double live_slowness = 2;

std::vector<StudiedCluster> studied_clusters() {
  return {{"speeds (1,1,1,2), 5 % jitter", {4, 0.25, 2, 0.05}},
          {"speeds (1,2), 5 % jitter", {2, 0.5, 2, 0.05}},
          {"4 equal workers, 30 % jitter", {4, 0, 1, 0.3}}};
}

void simulate_clusters(BarrierStudy& study) {
  study.clusters = studied_clusters();
  std::vector<TrialOptions> settings;
  std::vector<StudiedCluster*> cluster_of;
  for (StudiedCluster& cluster : study.clusters)
    for (const std::string& text : studied_barriers()) {
      TrialOptions setting{.barrier = barrier::parse(text).value(),
                           .workers = cluster.cluster.workers,
                           .step_times = step_times_of(cluster.cluster),
                           .horizon = studied_time,
                           .seed = study.options.seed};
      if (!check(setting)) continue;
      settings.push_back(std::move(setting));
      cluster_of.push_back(&cluster);
    }
  RunDisplay display{study.options.quiet, "simulating the claims"};
  auto runs = run_trials(settings, study.options.seeds, study.options.threads,
                         [&](double share) { display.show(share); });
  for (std::size_t i = 0; i < runs.size(); ++i) cluster_of[i]->runs.push_back(std::move(runs[i]));
}

/// Returns the settings of the job that runs live. Its model is small, so that a step takes hardly
/// longer than its delay.
Settings live_job(const StudyOptions& options, const char* delay) {
  return settings_of_flags({{"data", "linear:d=2,n=500"},
                            {"model", "linear"},
                            {"optimizer", "sgd:lr=0.01"},
                            {"batch", "4"},
                            {"mode", "central"},
                            {"workers", std::to_string(live_workers)},
                            {"barrier", "bsp"},
                            {"delay", delay},
                            {"straggler", "1:" + print_number(live_slowness) + "x"},
                            {"seconds", print_duration(options.live)},
                            {"seed", std::to_string(options.seed)},
                            {"quiet", "true"}});
}

/// Returns the step times of a simulation of a live job with this seed: the same delays, twice as
/// long for the last worker, and `overhead`, the mean time that a live step took beyond its delay.
/// A live worker draws its delays from the random stream of its id and its incarnation, which is 0,
/// and in central mode draws nothing else from this stream.
StepTimes live_step_times(const Distribution& delay, core::Time overhead, std::uint64_t seed) {
  std::vector<Random> randoms;
  for (std::size_t worker = 0; worker < live_workers; ++worker)
    randoms.push_back(Random::stream(seed, worker, 0));
  return [delay, overhead, randoms](core::MemberId worker, core::Step, Random&) mutable {
    const double factor = worker + 1 == live_workers ? live_slowness : 1;
    return to_duration(static_cast<double>(delay.draw(randoms[worker]).count()) * factor) +
           overhead;
  };
}

/// Runs the barrier live. Returns the live figures; those of simulations are not set. Sets
/// `overhead` to the mean time of a step beyond its delay.
Result<LiveComparison> run_live_barrier(const PreparedRun& ready, const std::string& barrier,
                                        const char* delay, core::Time& overhead) {
  actor::TrainOptions job = ready.resolved.options;
  job.job.barrier = barrier::parse(barrier).value();
  job.job.evaluate_train = false;
  const auto outcome = ready.model->train(ready.data.train, nullptr, job);
  if (!outcome) return outcome.error();
  if (outcome->end == actor::Outcome::End::failed) return Error{outcome->error};
  const actor::Progress& last = outcome->last;
  overhead = last.mean_work_time;
  return LiveComparison{.barrier = job.job.barrier,
                        .delay = delay,
                        .seconds = in_seconds(last.elapsed),
                        .updates = static_cast<double>(last.updates),
                        .waiting_share = last.waiting_share,
                        .max_lag = static_cast<double>(last.max_lag),
                        .overhead_s = in_seconds(last.mean_work_time)};
}

/// Runs all barriers live, one after another, and simulates each for the same time.
Result<void> run_live_barriers(BarrierStudy& study, const Registry& registry) {
  const double runs = 2.0 * static_cast<double>(live_barriers().size());
  RunDisplay display{study.options.quiet, "training live"};
  std::vector<TrialOptions> settings;
  for (const char* delay : {constant_delay, exponential_delay}) {
    const auto ready = prepare(registry, live_job(study.options, delay), "");
    if (!ready) return ready.error();
    for (const std::string& barrier : live_barriers()) {
      display.show(static_cast<double>(study.live.size()) / runs);
      core::Time overhead{};
      auto run = run_live_barrier(*ready, barrier, delay, overhead);
      if (!run) return std::move(run).error().within(barrier + ", delay " + delay);
      settings.push_back({.barrier = run->barrier,
                          .workers = live_workers,
                          .step_times = live_step_times(parse_distribution(delay).value(), overhead,
                                                        study.options.seed),
                          .horizon = to_duration(run->seconds * 1e9),
                          .seed = study.options.seed,
                          .points = 1});
      study.live.push_back(*std::move(run));
    }
  }
  const auto trials =
      run_trials(settings, study.options.seeds, study.options.threads, [](double) {});
  for (std::size_t i = 0; i < trials.size(); ++i) study.live[i].simulated = figures_of(trials[i]);
  return {};
}

void draw_map(BarrierStudy& study) {
  WinnerMapOptions map{.seed = study.options.seed, .threads = study.options.threads};
  if (study.options.quick) {
    map.workers = {4};
    map.slownesses = {4};
    map.seeds = 2;
  }
  RunDisplay display{study.options.quiet, "simulating the map"};
  study.map = simulate_winner_map(map, [&](double share) { display.show(share); });
}

}  // namespace

const std::vector<std::string>& studied_barriers() {
  static const std::vector<std::string> barriers{"bsp",
                                                 "ssp:s=3",
                                                 "dssp:low=3,high=15",
                                                 "dssp:low=3,high=15,cap",
                                                 "ebsp:ahead=15",
                                                 "fluent:s=3,p=1",
                                                 "fluent:s=3,p=0.5",
                                                 "fluent:s=3,p=0.1",
                                                 "fluent:s=3,p=0",
                                                 "quorum:q=0.75",
                                                 "pssp:s=3,beta=1",
                                                 "asp"};
  return barriers;
}

const std::vector<std::string>& live_barriers() {
  static const std::vector<std::string> barriers{"bsp",
                                                 "ssp:s=3",
                                                 "dssp:low=3,high=15",
                                                 "dssp:low=3,high=15,cap",
                                                 "ebsp:ahead=15",
                                                 "fluent:s=3,p=0.5",
                                                 "quorum:q=0.75",
                                                 "pssp:s=3,beta=1",
                                                 "asp"};
  return barriers;
}

const BarrierTrials* runs_of(const StudiedCluster& cluster, const std::string& barrier) {
  const barrier::Barrier wanted = barrier::parse(barrier).value();
  const auto at = std::ranges::find(cluster.runs, wanted, &BarrierTrials::barrier);
  return at == cluster.runs.end() ? nullptr : &*at;
}

std::vector<double> update_ratios(const StudiedCluster& cluster, const std::string& barrier,
                                  const std::string& other) {
  const BarrierTrials* runs = runs_of(cluster, barrier);
  const BarrierTrials* others = runs_of(cluster, other);
  STARLING_CHECK(runs != nullptr && others != nullptr);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < runs->trials.size(); ++i)
    ratios.push_back(runs->trials[i].updates / others->trials[i].updates);
  return ratios;
}

const LiveComparison& live_run(const BarrierStudy& study, const std::string& barrier,
                               const std::string& delay) {
  const barrier::Barrier wanted = barrier::parse(barrier).value();
  const auto at = std::ranges::find_if(study.live, [&](const LiveComparison& live) {
    return live.barrier == wanted && live.delay == delay;
  });
  STARLING_CHECK(at != study.live.end());
  return *at;
}

Result<BarrierStudy> make_study(const Registry& registry, const StudyOptions& options) {
  BarrierStudy study{.options = options};
  if (auto ran = run_live_barriers(study, registry); !ran) return std::move(ran).error();
  simulate_clusters(study);
  draw_map(study);
  return study;
}

}  // namespace starling::program
