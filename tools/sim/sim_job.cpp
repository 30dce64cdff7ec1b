#include "starling/tools/sim/sim_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/program/byte_amount.hpp"
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

/// Returns a job without settings: with the defaults of training if `has_training_defaults`, else
/// with those of the published simulation.
SimJob default_job(bool has_training_defaults) {
  SimJob job;
  if (!has_training_defaults) return job;
  const Job train;
  job.mode = train.train.job.mode;
  job.options.workers = train.train.job.workers;
  return job;
}

/// Returns the barriers of a job that sets none. A sample size is at most the number of other
/// workers.
std::vector<barrier::Barrier> default_barriers(const SimJob& job, const Settings& settings,
                                               bool has_training_defaults) {
  if (is_exchange_barrier(settings)) return {barrier::Barrier{barrier::Bsp{}}};
  const std::size_t others = job.options.workers - 1;
  auto barriers =
      has_training_defaults ? std::vector{Job{}.train.job.barrier} : published_barriers(job.mode);
  for (auto& barrier : barriers)
    if (barrier.sample) barrier.sample = std::min(*barrier.sample, others);
  return barriers;
}

/// Returns true for the options that decide how many steps an epoch has.
bool sets_epoch_length(std::string_view option) {
  constexpr std::array<std::string_view, 6> options{"data",    "test", "split",
                                                    "holdout", "seed", "batch"};
  return std::ranges::find(options, option) != options.end();
}

/// Returns an Error if one of `held-up`, a share of packets, and `held-up-by`, the time by which
/// they are delayed, is set without the other.
Result<void> check_held_up(const SimJob& job, const Settings& settings) {
  const bool has_share = job.link.reordering > 0;
  const bool has_time = job.link.delay != Distribution{};
  if (has_share && !has_time)
    return Error{location_of(settings, "held-up") +
                 ": needs a time; valid: with held-up-by, like exp:10ms"};
  if (has_time && !has_share)
    return Error{location_of(settings, "held-up-by") +
                 ": has no effect without a share of packets; valid: with held-up, like 10%"};
  return {};
}

/// Returns an Error if a setting has an effect only at the other level. A job file may have
/// settings of training that the step level ignores.
Result<void> check_level(const SimJob& job, const Settings& settings) {
  if (job.level == Level::protocol) {
    if (job.learn)
      return Error{location_of(settings, "learn") +
                   ": the protocol level learns the job's own model; valid: without --learn"};
    if (job.bytes)
      return Error{location_of(settings, "bytes") +
                   ": at the protocol level the model has its own size; valid: without bytes, or "
                   "--level step"};
    if (const std::string location = location_of(settings, "sampling"); !location.empty())
      return Error{location +
                   ": the protocol level always draws other workers, as live jobs do; valid: "
                   "without sampling, or --level step"};
    return check_held_up(job, settings);
  }
  for (const Setting& setting : settings) {
    if (setting.key == "batch" && setting.text.starts_with("dynamic"))
      return Error{
          setting.location +
          ": the step level simulates steps without samples; valid: with --level protocol, "
          "or a whole number"};
    const bool is_learning_key = std::ranges::count(learning_keys(), setting.key) > 0;
    const bool is_flag = setting.location == "--" + setting.key;
    const bool is_used = (job.epochs && sets_epoch_length(setting.key)) ||
                         (job.bytes && is_exchange_key(setting.key));
    if (!is_used && is_exchange_key(setting.key) && (is_flag || is_network_key(setting.key)))
      return Error{setting.location +
                   ": has no effect at the step level without the size of the model; valid: with "
                   "bytes, like 100M, or --level protocol"};
    if (!is_used && (is_network_key(setting.key) || (is_learning_key && is_flag)))
      return Error{setting.location +
                   ": has an effect only at the protocol level; valid: with --level "
                   "protocol"};
  }
  return {};
}

/// Puts the location of a setting before an error about it.
Error with_location(const Setting& setting, Error error) {
  const std::string option = setting.key + ": ";
  if (error.message.starts_with(option)) error.message.erase(0, option.size());
  return std::move(error).within(setting.location);
}

/// Sets the exchange that the step level simulates: by default `owners`, as in training, with one
/// server in modes that have servers.
Result<void> put_exchange(SimJob& job, const Settings& settings) {
  if (job.learn)
    return Error{location_of(settings, "learn") +
                 ": its linear model has no exchange, which bytes asks for; valid: without bytes, "
                 "or without learn"};
  sim::ExchangeStepOptions exchange{.bytes = *job.bytes,
                                    .latency = job.link.latency,
                                    .bytes_per_second = job.link.bytes_per_second};
  if (const auto name = text_of(settings, "exchange"); !name.empty()) exchange.name = name;
  if (const auto shards = text_of(settings, "shards"); !shards.empty()) {
    const auto count = parse_count(shards, 1, 1'000'000);
    if (!count) return Error{count.error()}.within(location_of(settings, "shards"));
    if (auto fits = check_shards(*count, job.mode, settings); !fits) return fits;
    exchange.servers = *count;
  }
  job.options.exchange = std::move(exchange);
  return {};
}

/// Stores the settings of known options in the job.
Result<void> apply_settings(SimJob& job, const Settings& settings, const Registry& registry) {
  std::set<std::string> seen;
  for (const Setting& setting : settings) {
    const SimKey* key = find_sim_key(setting.key);
    if (key == nullptr) continue;
    if (key->type != ValueType::texts && !seen.insert(setting.key).second)
      return Error{setting.location + ": is given twice; valid: once"};
    if (auto done = key->set({job, registry, setting.text}); !done)
      return with_location(setting, std::move(done).error());
  }
  return {};
}

/// Converts the job's epochs to steps of a worker. Loads the data to learn its size.
Result<core::Step> steps_of_epochs(const SimJob& job, const Settings& settings,
                                   const Registry& registry) {
  Job train;
  for (const Setting& setting : settings)
    if (sets_epoch_length(setting.key))
      if (auto set = find_key(setting.key)->set({train, registry, setting.text}); !set)
        return with_location(setting, std::move(set).error());
  const auto data = load_data(registry, train.data);
  if (!data)
    return Error{"the data, which says how many steps an epoch has, cannot be loaded (" +
                 data.error().message + "); valid: steps instead"}
        .within(location_of(settings, "epochs"));
  train.train.job.workers = job.options.workers;
  return actor::steps_in_epochs(*job.epochs, train.train, data->train.size());
}

/// Puts the location of a setting before an error of sim::check() about it.
Error with_location(Error error, const Settings& settings) {
  const std::string prefix = "step time: ";
  if (!error.message.starts_with(prefix)) return add_location(std::move(error), settings);
  error.message.erase(0, prefix.size());
  const std::string location = location_of(settings, "step-time");
  return std::move(error).within(location.empty() ? location_of(settings, "delay") : location);
}

/// Checks the options of every run, and that no seed exceeds the largest 64-bit number.
Result<void> check_combinations(const SimJob& job, const Settings& settings) {
  if (job.options.seed > std::numeric_limits<std::uint64_t>::max() - (job.seeds - 1))
    return Error{"--seeds: " + std::to_string(job.seeds) + " seeds from " +
                 std::to_string(job.options.seed) + " on exceed the largest seed, " +
                 std::to_string(std::numeric_limits<std::uint64_t>::max())};
  for (std::size_t i = 0; i < job.barriers.size(); ++i) {
    auto options = run_options(job, i, job.options.seed);
    if (auto valid = core::check(job.mode, options.barrier, options.recheck, options.workers,
                                 is_exchange_barrier(settings));
        !valid)
      return add_location(std::move(valid).error(), settings);
    const auto valid =
        job.level == Level::protocol ? sim::check_of_both_levels(options) : sim::check(options);
    if (!valid) return with_location(std::move(valid).error(), settings);
  }
  return {};
}

/// Estimates the bytes of the largest run at the step level.
std::uint64_t estimate_step_level_bytes(const SimJob& job) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < job.barriers.size(); ++i)
    largest = std::max(largest, sim::memory_estimate(run_options(job, i, job.options.seed)));
  if (!job.stragglers.empty()) largest += job.options.workers * sizeof(double);
  if (job.learn)
    largest += job.options.workers * LinearLearner::bytes_per_worker +
               (linear_parameters + 2 * job.options.points) * sizeof(float);
  return largest;
}

/// Adds notes on the settings that a job file lacks, and on those that are not simulated.
void add_notes(SimJob& job, const Settings& settings) {
  const auto& options = job.options;
  if (!job.step_time && (!job.delay || *job.delay == Distribution{}))
    job.notes.push_back("steps " + print(options.step_time) + ", because the job has no delay");
  if (!job.horizon && !job.seconds)
    job.notes.push_back("ends at " + print_duration(options.horizon) +
                        ", because the job has no seconds");
  for (const char* key : {"until", "patience"})
    if (!location_of(settings, key).empty())
      job.notes.push_back(std::string{key} + " is not simulated");
  const std::string exchange = text_of(settings, "exchange");
  const auto is_bsp = [](const barrier::Barrier& barrier) { return barrier::is_bsp(barrier); };
  if (job.level == Level::step && !job.bytes && !exchange.empty() && exchange != "owners")
    job.notes.push_back("exchange " + exchange + " is not simulated without bytes" +
                        (is_exchange_barrier(settings) && std::ranges::all_of(job.barriers, is_bsp)
                             ? "; instead, workers wait for all others in every step"
                             : ""));
}

}  // namespace

bool is_exchange_barrier(const Settings& settings) {
  const std::string exchange = text_of(settings, "exchange");
  return !exchange.empty() && core::check_exchange(exchange).ok() &&
         core::exchange_type(exchange).is_barrier;
}

Result<SimJob> make_sim_job(const Settings& settings, const Registry& registry, bool has_file) {
  const auto level = std::ranges::find(settings, "level", &Setting::key);
  const bool has_training_defaults = has_file || !text_of(settings, "bytes").empty() ||
                                     (level != settings.end() && level->text == "protocol");
  SimJob job = default_job(has_training_defaults);
  if (auto done = apply_settings(job, settings, registry); !done) return std::move(done).error();
  if (auto valid = check_level(job, settings); !valid) return std::move(valid).error();
  if (job.bytes)
    if (auto done = put_exchange(job, settings); !done) return std::move(done).error();
  auto& options = job.options;
  if (job.barriers.empty()) job.barriers = default_barriers(job, settings, has_training_defaults);
  if (job.step_time)
    options.step_time = *job.step_time;
  else if (job.delay && *job.delay != Distribution{})
    options.step_time = *job.delay;
  if (const auto time = job.horizon ? job.horizon : job.seconds) options.horizon = *time;
  if (has_file) add_notes(job, settings);
  options.recheck = job.recheck.value_or(core::default_recheck(job.mode));
  // Checks the memory before anything is allocated whose size grows with the workers.
  std::uint64_t problem_bytes =
      job.learn ? linear_samples * (linear_parameters + 1) * sizeof(float) : 0;
  // The options of every run have the stragglers' factors and absences from the beginning.
  if (job.level == Level::step && !job.stragglers.empty()) {
    const bool has_absences = std::ranges::any_of(
        job.stragglers, [](const auto& rule) { return rule.absence != Absence{}; });
    problem_bytes += job.barriers.size() * job.seeds * options.workers *
                     (sizeof(double) + (has_absences ? sizeof(Absence) : 0));
  }
  if (auto fits = check_memory(job, settings, estimate_step_level_bytes(job), problem_bytes); !fits)
    return std::move(fits).error();
  if (!job.stragglers.empty()) {
    auto slow = slowdown_factors(job.stragglers, options.workers);
    if (!slow) return add_location(std::move(slow).error(), settings);
    options.slowness = *std::move(slow);
    options.absences = absences(job.stragglers, options.workers).value();
  }
  if (auto valid = check_combinations(job, settings); !valid) return std::move(valid).error();
  if (job.epochs) {
    auto steps = steps_of_epochs(job, settings, registry);
    if (!steps) return std::move(steps).error();
    job.steps_limit = options.steps_max;
    options.steps_max = std::min(options.steps_max, *steps);
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

Result<void> check_memory(const SimJob& job, const Settings& settings, std::uint64_t bytes_per_run,
                          std::uint64_t shared_bytes) {
  if (!job.memory_max) return {};
  const std::uint64_t runs = threads_of(job);
  const std::uint64_t total = bytes_per_run * runs + shared_bytes;
  if (total <= *job.memory_max) return {};
  return Error{location_of(settings, "memory") + ": " + print_count(runs, "run") +
               " at the same time of " + print_count(job.options.workers, "worker") +
               " would take about " + print_bytes(total) + ", more than the limit of " +
               print_bytes(*job.memory_max) +
               "; valid: fewer workers, fewer --threads or --seeds, or a higher limit"};
}

std::size_t threads_of(const SimJob& job) {
  const std::size_t threads =
      job.threads > 0 ? job.threads : std::max(1U, std::thread::hardware_concurrency());
  return std::min<std::uint64_t>(threads, job.barriers.size() * job.seeds);
}

}  // namespace starling::program
