/// One job in this process: real actors and messages, in any mode, under any barrier.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/compute/test_scheduler.hpp"
#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/result.hpp"
#include "starling/base/straggler.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace caf {
class actor_system;
}
namespace starling::actor {
struct Directory;
}

namespace starling::actor {

/// Smallest, middle and largest of the workers' steps.
struct Spread {
  core::Step min = 0;
  core::Step median = 0;
  core::Step max = 0;
};

/// Evaluations that were due, and those of them that were left out, by the reason.
struct EvaluationCounts {
  /// One for every `evaluate_every` steps that the workers made on average, and one at the end.
  std::uint64_t due = 0;
  /// The workers were past it, and past the next, when their reports came.
  std::uint64_t outrun = 0;
  /// Evaluations before it were still being made.
  std::uint64_t crowded = 0;
  /// The model could not be had.
  std::uint64_t missing = 0;
  /// The job was stopped, or its time was up, before it was made.
  std::uint64_t ended = 0;

  [[nodiscard]] std::uint64_t left_out() const { return outrun + crowded + missing + ended; }
};

/// The progress of a running job. All figures are measured, as of the workers' last reports.
struct Progress {
  core::Time elapsed{};
  /// Updates made, one a worker and step.
  std::uint64_t updates = 0;
  Spread spread;
  /// The largest max - min so far of the steps reported; in central mode the exact one at the end.
  core::Step max_lag = 0;
  /// Share of the workers' time spent waiting at barriers.
  double waiting_share = 0;
  /// Mean time that a step takes beyond the delay put into it: reading, computing, pushing, and
  /// waiting for a processor.
  core::Time overhead{};
  /// Mean loss of the batches since the last progress; repeats the last where there were none.
  double loss = 0;
  /// The latest evaluations on test and training data, and the mean step they were asked at.
  models::Metrics test;
  models::Metrics train;
  double evaluated_at = 0;
  std::size_t evaluations = 0;
  EvaluationCounts counts;
  /// Barrier draws made, and those that let a worker pass; 0 for barriers over everyone.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
};

/// A figure of the evaluation to be reached.
struct Target {
  std::string metric;
  double value = 0;
  /// True for figures that grow as the model improves.
  bool at_least = true;
};

/// False where the figure is not among `metrics`.
[[nodiscard]] bool reached(const Target& target, const models::Metrics& metrics);

/// Called with the state of every range and the number of updates in it.
using SaveState = std::function<void(const std::vector<core::RangeState>&)>;

/// Called with all members, before any of them starts.
using OnStart =
    std::function<void(const std::shared_ptr<const actor::Directory>&, caf::actor_system&)>;

/// A criterion of one's own on the figures and the state of every range.
using StopWhen = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Called with the figures of an evaluation and the model that was evaluated; false ends the job in
/// order.
using OnEvaluated = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Computes figures of a model beyond its own.
using MoreFigures = std::function<models::Metrics(const std::vector<core::RangeState>&)>;

struct JobOptions {
  core::Mode mode = core::Mode::peer;
  barrier::Barrier barrier = barrier::sampled(barrier::Ssp{4}, 2);
  /// nullopt: the mode's default.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t workers = 4;
  /// Server shards in central and hybrid mode; 0 takes 1 for each 4 workers, at most 8.
  std::size_t shards = 0;
  /// Steps of each worker.
  core::Step steps = barrier::finished;
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  std::optional<Target> until = std::nullopt;
  /// Asked on a compute thread at each evaluation (see evaluate_every); true ends the job in order,
  /// as reached. The ranges' states are of one round under bsp only where the job has one range.
  StopWhen stop_when = {};
  std::uint64_t seed = 1;

  Distribution delay = {};
  std::vector<StragglerRule> stragglers = {};
  /// Compute threads; 0 takes one for each processor.
  std::size_t compute_threads = 0;
  /// A step that throws this many times in a row ends the job.
  int attempts = 3;
  /// On several nodes: replicas of each range, or as many as there are owners. `copies` - 1 deaths
  /// at once cost nothing.
  std::size_t copies = 2;
  /// On several nodes: how long the job waits for nodes that it cannot go on without, before it is
  /// given up: a range's owners, or those without which there is no majority.
  std::chrono::nanoseconds wait_for_nodes = std::chrono::seconds{30};

  /// Evaluates whenever the workers have made this many more steps on average; 0: at the end only.
  core::Step evaluate_every = 0;
  /// Called with every evaluation, the one at the end too, in order, on the observer's thread.
  /// Where it returns false the job ends as reached.
  OnEvaluated on_evaluated = {};
  /// Added to the figures of each evaluation on test data; called on a compute thread.
  MoreFigures more_figures = {};
  /// Evaluates on the training data too at the end.
  bool evaluate_train = true;
  /// Saves whenever this many more steps were made: rounds under bsp, on average otherwise; 0
  /// never.
  core::Step checkpoint_every = 0;
  SaveState on_checkpoint = {};

  /// Called about every `progress_every` on the observer's thread; false stops the job in order.
  std::function<bool(const Progress&)> on_progress = {};
  std::chrono::nanoseconds progress_every = std::chrono::milliseconds{200};
  /// Stops the job in order.
  std::stop_token stop = {};

  /// Called once, on the thread that runs the job, when all members know each other and none has
  /// started: the place to spawn actors of one's own (see actor/interfaces.hpp). The job's end
  /// waits for theirs, so each quits when the job's observer, which it monitors, is down; and for
  /// every other thread that made a caf::scoped_actor, since CAF 0.17 keeps its system alive from
  /// there until the thread ends.
  OnStart on_start = {};

  /// Decides which actor acts next, in place of threads and of the wall clock; it outlives the job.
  TestScheduler* scheduler = nullptr;
};

/// How a job ended, and what it leaves.
struct Outcome {
  enum class End {
    /// All steps were made.
    completed,
    /// The time was up, or the target was reached.
    reached,
    /// Someone asked it to stop.
    stopped,
    /// See error.
    failed,
  };
  End end = End::completed;
  std::string error;
  /// The figures at the end.
  Progress last;
  /// The state of all ranges, by range. After a failure the last good one, empty if it was lost.
  std::vector<core::RangeState> model;
};

/// Refuses options that cannot work, with the reason.
[[nodiscard]] Result<void> check(const JobOptions& options);

/// Refuses states that a job of these options cannot go on from; the message begins with a verb.
[[nodiscard]] Result<void> check_start(const JobOptions& options,
                                       const std::vector<core::RangeState>& start);

/// Turns saved states into those of a job that starts: its first `options.workers` workers go on in
/// incarnation 0, all of them from the complete round where rounds are gathered. The updates of
/// other workers stay in the values.
void make_fresh(std::vector<core::RangeState>& states, const JobOptions& options);

/// Where each worker goes on from: the step whose update every range holds.
[[nodiscard]] std::vector<core::LedgerEntry> first_entries(
    const std::vector<core::RangeState>& start, std::size_t workers);

/// How many owners the parameters have: servers, or peers.
[[nodiscard]] std::size_t owner_count(const JobOptions& options);
/// On several nodes: how many of them are to own ranges, as long as there are so many.
[[nodiscard]] std::size_t owners_wanted(const JobOptions& options);
/// How many threads compute in one process: as many as it has processors, unless options set it; 0
/// where there is a scheduler.
[[nodiscard]] std::size_t compute_threads(const JobOptions& options);

/// Runs a job to its end; blocks. `start` holds the content of every range of task->layout(), with
/// ledgers where the job goes on from a saved state. T is the element type of the parameters.
template <class T>
[[nodiscard]] Result<Outcome> run_job(const JobOptions& options, std::shared_ptr<Task> task,
                                      core::Applier<T> applier,
                                      std::vector<core::RangeState> start);

extern template Result<Outcome> run_job<float>(const JobOptions&, std::shared_ptr<Task>,
                                               core::Applier<float>, std::vector<core::RangeState>);
extern template Result<Outcome> run_job<double>(const JobOptions&, std::shared_ptr<Task>,
                                                core::Applier<double>,
                                                std::vector<core::RangeState>);

}  // namespace starling::actor
