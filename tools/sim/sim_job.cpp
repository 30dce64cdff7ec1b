#include "starling/tools/sim/sim_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/sim/learning.hpp"
#include "starling/tools/sim/linear_learner.hpp"
#include "starling/tools/sim/sim_keys.hpp"

namespace starling::program {
namespace {

std::vector<barrier::Barrier> published_barriers(core::Mode mode) {
  const auto pbsp = barrier::sampled(barrier::Bsp{}, 10);
  const auto pssp = barrier::sampled(barrier::Ssp{4}, 10);
  if (!core::keeps_steps_centrally(mode)) return {pbsp, pssp, {barrier::Asp{}}};
  return {{barrier::Bsp{}}, {barrier::Ssp{4}}, pbsp, pssp, {barrier::Asp{}}};
}

/// Returns the defaults, before any setting, of a job file or of the lack of one.
SimJob first_defaults(bool has_file) {
  SimJob job;
  if (!has_file) return job;
  const Job train;
  job.mode = train.train.job.mode;
  job.options.workers = train.train.job.workers;
  return job;
}

/// Returns the barriers where none is asked for; they draw no more others than there are.
std::vector<barrier::Barrier> default_barriers(const SimJob& job, bool has_file) {
  const std::size_t others = job.options.workers - 1;
  auto all = has_file ? std::vector{Job{}.train.job.barrier} : published_barriers(job.mode);
  for (auto& barrier : all)
    if (barrier.sample) barrier.sample = std::min(*barrier.sample, others);
  return all;
}

/// True for the keys that decide how many steps an epoch is.
bool tells_epochs(std::string_view key) {
  constexpr std::array<std::string_view, 6> told{"data",    "test", "split",
                                                 "holdout", "seed", "batch"};
  return std::ranges::find(told, key) != told.end();
}

/// Refuses a share of packets that are held up without a time for it, and the other way round.
Result<void> check_held_up(const SimJob& job, const Settings& settings) {
  const bool some = job.link.reordering > 0;
  const bool lasts = job.link.delay != Distribution{};
  if (some && !lasts)
    return Error{place_of(settings, "held-up") +
                 ": for how long? valid: with held-up-by, as exp:10ms"};
  if (lasts && !some)
    return Error{place_of(settings, "held-up-by") +
                 ": has no effect where none are; valid: with held-up, as 10%"};
  return {};
}

/// Refuses settings that only the other level uses, instead of ignoring them in silence.
Result<void> check_level(const SimJob& job, const Settings& settings) {
  if (job.level == Level::protocol) {
    if (job.learn)
      return Error{place_of(settings, "learn") +
                   ": the protocol level learns the job's own model; valid: without it"};
    return check_held_up(job, settings);
  }
  for (const Setting& setting : settings) {
    const bool learning = std::ranges::count(learning_keys(), setting.key) > 0;
    const bool flag = setting.place == "--" + setting.key;
    const bool counts = job.epochs && tells_epochs(setting.key);
    if (is_network_key(setting.key) || (learning && flag && !counts))
      return Error{setting.place +
                   ": matters at the protocol level alone; valid: with --level "
                   "protocol"};
  }
  return {};
}

Error at(const Setting& setting, Error error) {
  const std::string own = setting.key + ": ";
  if (error.message.starts_with(own)) error.message.erase(0, own.size());
  return std::move(error).within(setting.place);
}

Result<void> read(SimJob& job, const Settings& settings, const Registry& registry) {
  std::set<std::string> seen;
  for (const Setting& setting : settings) {
    const SimKey* key = find_sim_key(setting.key);
    if (key == nullptr) continue;
    if (key->kind != KeyKind::texts && !seen.insert(setting.key).second)
      return Error{setting.place + ": is given twice"};
    if (auto done = key->set({job, registry, setting.text}); !done)
      return at(setting, std::move(done).error());
  }
  return {};
}

/// Computes from its data how many steps of a worker the job's epochs are.
Result<core::Step> steps_of_epochs(const SimJob& job, const Settings& settings,
                                   const Registry& registry) {
  Job train;
  for (const Setting& setting : settings)
    if (tells_epochs(setting.key))
      if (auto set = find_key(setting.key)->set({train, registry, setting.text}); !set)
        return at(setting, std::move(set).error());
  const auto data = load_data(registry, train.data);
  if (!data)
    return Error{"the data that says how many steps an epoch has cannot be had (" +
                 data.error().message + "); valid: steps instead"}
        .within(place_of(settings, "epochs"));
  train.train.job.workers = job.options.workers;
  return actor::steps_in(*job.epochs, train.train, data->train.size());
}

/// Puts before an error of sim::check the place of the setting that it is about.
Error placed_here(Error error, const Settings& settings) {
  const std::string law = "step time: ";
  if (!error.message.starts_with(law)) return placed(std::move(error), settings);
  error.message.erase(0, law.size());
  const std::string place = place_of(settings, "step-time");
  return std::move(error).within(place.empty() ? place_of(settings, "delay") : place);
}

Result<void> check_combinations(const SimJob& job, const Settings& settings) {
  if (job.options.seed > std::numeric_limits<std::uint64_t>::max() - (job.seeds - 1))
    return Error{"--seeds: " + std::to_string(job.seeds) + " seeds from " +
                 std::to_string(job.options.seed) + " on: there is none beyond " +
                 std::to_string(std::numeric_limits<std::uint64_t>::max())};
  for (std::size_t i = 0; i < job.barriers.size(); ++i) {
    const auto options = run_options(job, i, job.options.seed);
    if (auto valid = core::check(job.mode, options.barrier, options.recheck, options.workers);
        !valid)
      return placed(std::move(valid).error(), settings);
    if (auto valid = sim::check(options); !valid)
      return placed_here(std::move(valid).error(), settings);
  }
  return {};
}

/// Prints bytes in the unit that keeps the number short.
std::string print_bytes(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < units.size(); ++unit) amount /= 1024;
  return print_number(std::round(amount * 10) / 10) + " " + units[unit];
}

/// Estimates the bytes of the largest run at the step level.
std::uint64_t bytes_of_steps(const SimJob& job) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < job.barriers.size(); ++i)
    largest = std::max(largest, sim::memory_estimate(run_options(job, i, job.options.seed)));
  if (!job.stragglers.empty()) largest += job.options.workers * sizeof(double);
  if (job.learn)
    largest += job.options.workers * LinearLearner::bytes_a_worker +
               (linear_parameters + 2 * job.options.points) * sizeof(float);
  return largest;
}

/// Notes what a job file leaves open, and what it asks for that is not simulated.
void note_assumptions(SimJob& job, const Settings& settings) {
  const auto& options = job.options;
  if (!job.step_time && (!job.delay || *job.delay == Distribution{}))
    job.notes.push_back("steps " + print(options.step_time) + ", for the job has no delay");
  if (!job.horizon && !job.seconds)
    job.notes.push_back("ends at " + print_duration(options.horizon) +
                        ", for the job has no seconds");
  if (!place_of(settings, "until").empty()) job.notes.emplace_back("until is not simulated");
}

}  // namespace

Result<SimJob> make_sim_job(const Settings& settings, const Registry& registry, bool has_file) {
  const auto level = std::ranges::find(settings, "level", &Setting::key);
  const bool reads_file = has_file;
  has_file |= level != settings.end() && level->text == "protocol";
  SimJob job = first_defaults(has_file);
  if (auto done = read(job, settings, registry); !done) return std::move(done).error();
  if (auto valid = check_level(job, settings); !valid) return std::move(valid).error();
  auto& options = job.options;
  if (job.barriers.empty()) job.barriers = default_barriers(job, has_file);
  if (job.step_time)
    options.step_time = *job.step_time;
  else if (job.delay && *job.delay != Distribution{})
    options.step_time = *job.delay;
  if (const auto time = job.horizon ? job.horizon : job.seconds) options.horizon = *time;
  if (reads_file) note_assumptions(job, settings);
  options.recheck = job.recheck.value_or(core::default_recheck(job.mode));
  // Checks the memory before anything is made that grows with the workers.
  const std::uint64_t problem =
      job.learn ? linear_samples * (linear_parameters + 1) * sizeof(float) : 0;
  if (auto fits = check_memory(job, settings, bytes_of_steps(job), problem); !fits)
    return std::move(fits).error();
  if (!job.stragglers.empty()) {
    auto slow = slowdown_factors(job.stragglers, options.workers);
    if (!slow) return placed(std::move(slow).error(), settings);
    options.slowness = *std::move(slow);
  }
  if (auto valid = check_combinations(job, settings); !valid) return std::move(valid).error();
  if (job.epochs) {
    auto steps = steps_of_epochs(job, settings, registry);
    if (!steps) return std::move(steps).error();
    options.last = std::min(options.last, *steps);
  }
  return job;
}

sim::StepOptions run_options(const SimJob& job, std::size_t barrier, std::uint64_t seed) {
  auto options = job.options;
  options.barrier = job.barriers[barrier];
  options.mode = job.mode;
  options.seed = seed;
  return options;
}

Result<void> check_memory(const SimJob& job, const Settings& settings, std::uint64_t bytes,
                          std::uint64_t shared) {
  if (!job.memory_max) return {};
  const std::uint64_t runs = threads_of(job);
  const std::uint64_t all = bytes * runs + shared;
  if (all <= *job.memory_max) return {};
  return Error{place_of(settings, "memory") + ": " + counted(runs, "run") +
               " at the same time of " + counted(job.options.workers, "worker") +
               " would take about " + print_bytes(all) + ", more than the limit of " +
               print_bytes(*job.memory_max) +
               "; valid: fewer workers, fewer --threads, or a higher limit"};
}

std::size_t threads_of(const SimJob& job) {
  const std::size_t most =
      job.threads > 0 ? job.threads : std::max(1U, std::thread::hardware_concurrency());
  return std::min<std::uint64_t>(most, job.barriers.size() * job.seeds);
}

}  // namespace starling::program
