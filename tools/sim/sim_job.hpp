/// The settings of a simulation, from flags and a job file, with types and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/base/straggler.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The level of detail of a simulation.
enum class Level {
  /// Only steps and barriers.
  step,
  /// Every message of a job that trains a model.
  protocol,
};

/// A description of the training at the protocol level, with the texts that a job file would have.
struct LearningDescription {
  std::string data;
  std::string model;
  std::string optimizer;
  std::string exchange = {};
  /// Empty if workers send whole gradients.
  std::string compression = {};
  std::string batch = {};
  /// The number of servers; 0 in peer mode.
  std::size_t shards = 0;
};

/// A job to simulate: one or more runs under each of its barriers.
struct SimJob {
  Level level = Level::step;
  /// The properties of every link of the network. The step level has the latency and the bandwidth
  /// only, and only with `bytes`.
  sim::LinkOptions link{};
  /// Step level only: the size of the model, whose exchange is simulated (StepOptions::exchange).
  std::optional<double> bytes = std::nullopt;
  /// All options of a run except its barrier, its mode and its seed, which run_options() sets.
  /// After make_sim_job(), sim::check() accepts the options of every run.
  sim::StepOptions options;
  core::Mode mode = core::Mode::central;
  /// The barriers that are compared side by side.
  std::vector<barrier::Barrier> barriers{};
  /// Absent: the default policy of the mode.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::vector<StragglerRule> stragglers{};
  /// `delay`, a setting of training jobs, is the step time if `step_time` is absent.
  std::optional<Distribution> step_time = std::nullopt;
  std::optional<Distribution> delay = std::nullopt;
  /// `seconds`, the time limit of training jobs, is the horizon if `horizon` is absent.
  std::optional<core::Time> horizon = std::nullopt;
  std::optional<core::Time> seconds = std::nullopt;
  /// The passes over the training data after which a worker ends.
  std::optional<double> epochs = std::nullopt;
  /// With `epochs`: the limit of steps that the job also sets. options.steps_max is the lower of
  /// this limit and the steps of the epochs.
  core::Step steps_limit = barrier::unlimited;

  /// The number of runs of each barrier, under the seeds options.seed, options.seed + 1, ...
  std::uint64_t seeds = 1;
  /// The number of runs at the same time; 0: one for each processor.
  std::size_t threads = 0;
  /// The largest memory in bytes that the runs made at the same time may take together.
  std::optional<std::uint64_t> memory_max = std::nullopt;

  /// True if a linear model of 1,000 parameters learns in each run of the step level.
  bool learn = false;

  /// Notes for the report: the settings that a job file lacks, with the values used in their place,
  /// and the settings that are not simulated.
  std::vector<std::string> notes{};
  /// Protocol level only: absent until the data and the model are loaded.
  std::optional<LearningDescription> learned = std::nullopt;

  /// Outputs: a file and a folder, each empty if it is not asked for.
  std::string csv;
  std::string plots;
  bool json = false;
  bool quiet = false;
};

/// Returns true if the exchange that the settings name is itself the barrier.
[[nodiscard]] bool is_exchange_barrier(const Settings& settings);

/// Makes a job from the settings that affect a simulation; skips those that affect only training.
/// Returns an Error with the location of the first bad setting. Without a job file, the defaults
/// are those of the published simulation: 1,000 workers, steps of 100 ms on average, 40 s, five
/// barriers side by side. With a job file, at the protocol level, or with `bytes`, they are the
/// defaults of training.
[[nodiscard]] Result<SimJob> make_sim_job(const Settings& settings, const Registry& registry,
                                          bool has_file);

/// Returns the options of one run. `barrier` is an index into the job's barriers.
[[nodiscard]] sim::StepOptions run_options(const SimJob& job, std::size_t barrier,
                                           std::uint64_t seed);

/// Returns an Error if the runs that are made at the same time would take more memory than the job
/// allows. Each of them takes `bytes_per_run`, and they share `shared_bytes`.
[[nodiscard]] Result<void> check_memory(const SimJob& job, const Settings& settings,
                                        std::uint64_t bytes_per_run, std::uint64_t shared_bytes);

/// Returns how many runs are made at the same time.
[[nodiscard]] std::size_t threads_of(const SimJob& job);

}  // namespace starling::program
