/// A simulation as flags and a job file ask for it, with types and defaults.
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

/// How much is simulated: steps and barriers, or every message of a job that learns.
enum class Level { step, protocol };

/// Describes what is learned at the protocol level, as a job file would say it.
struct Learned {
  std::string data;
  std::string model;
  std::string optimizer;
  std::size_t batch = 0;
  /// Servers; 0 in peer mode.
  std::size_t shards = 0;
};

struct SimJob {
  Level level = Level::step;
  /// Protocol level only: every link of the network.
  sim::LinkOptions link{};
  /// All options of a run but its barrier and its seed. After make_sim_job(), sim::check accepts
  /// every simulation of the job.
  sim::StepOptions options;
  core::Mode mode = core::Mode::central;
  /// The barriers that are compared side by side.
  std::vector<barrier::Barrier> barriers{};
  /// Absent: the mode's own policy.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::vector<StragglerRule> stragglers{};
  /// A job's delay stands for its step time where no step time is given.
  std::optional<Distribution> step_time = std::nullopt;
  std::optional<Distribution> delay = std::nullopt;
  /// A job's limit of time stands for the horizon where none is given.
  std::optional<core::Time> horizon = std::nullopt;
  std::optional<core::Time> seconds = std::nullopt;
  std::optional<double> epochs = std::nullopt;

  /// Runs of each barrier, under the seeds options.seed, options.seed + 1, ...
  std::uint64_t seeds = 1;
  /// Runs at the same time; 0: one for each processor.
  std::size_t threads = 0;
  /// The most bytes that all runs at the same time may take.
  std::optional<std::uint64_t> memory_max = std::nullopt;

  /// A linear model of 1,000 parameters learns along.
  bool learn = false;

  /// Says what a job file leaves open and what stands for it, and what it asks for that is not
  /// simulated.
  std::vector<std::string> notes{};
  /// Protocol level only: absent until the data and the model are loaded.
  std::optional<Learned> learned = std::nullopt;

  /// Outputs; empty where not asked for.
  std::string csv;
  std::string plots;
  bool json = false;
  bool quiet = false;
};

/// Reads every setting that matters to a simulation, and skips the others, which are of training.
/// Refuses the first bad setting with its place. Without a job file the defaults are the published
/// simulation: 1,000 workers, steps of 100 ms on average, 40 s, five barriers side by side. With a
/// job file, or at the protocol level, they are those of training.
[[nodiscard]] Result<SimJob> make_sim_job(const Settings& settings, const Registry& registry,
                                          bool has_file);

/// Returns the options of one run.
[[nodiscard]] sim::StepOptions run_options(const SimJob& job, std::size_t barrier,
                                           std::uint64_t seed);

/// Refuses a job whose runs at the same time would take more than its memory: `bytes` each, and
/// `shared` together.
[[nodiscard]] Result<void> check_memory(const SimJob& job, const Settings& settings,
                                        std::uint64_t bytes, std::uint64_t shared);

/// Returns how many runs are made at the same time.
[[nodiscard]] std::size_t threads_of(const SimJob& job);

}  // namespace starling::program
