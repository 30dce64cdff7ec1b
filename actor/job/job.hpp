/// Runs a job in this process: its actors, in any mode and under any barrier.
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

/// The minimum, median and maximum of the workers' steps.
struct Spread {
  core::Step min = 0;
  core::Step median = 0;
  core::Step max = 0;
};

/// The number of evaluations that were due, and of those that were left out, by reason.
struct EvaluationCounts {
  /// One each time that the workers' mean step reaches a multiple of `evaluate_every`, and one at
  /// the end.
  std::uint64_t due = 0;
  /// Left out because a later one was due too when the workers' reports came.
  std::uint64_t outrun = 0;
  /// Left out because too many earlier ones were still waiting.
  std::uint64_t crowded = 0;
  /// Left out because the model could not be read.
  std::uint64_t missing = 0;
  /// Left out because the job was stopped, or its time was up.
  std::uint64_t ended = 0;

  [[nodiscard]] std::uint64_t left_out() const { return outrun + crowded + missing + ended; }
};

/// The progress of a running job, as measured up to the workers' last reports.
struct Progress {
  core::Time elapsed{};
  /// The number of updates: the sum of the workers' steps.
  std::uint64_t updates = 0;
  Spread spread;
  /// The largest max - min so far of the steps reported; in central mode the exact one at the end.
  core::Step max_lag = 0;
  /// The share of the workers' time that they waited at barriers.
  double waiting_share = 0;
  /// The mean time of a step without injected delays and barriers: reading, computing, pushing, and
  /// waiting for a processor.
  core::Time overhead{};
  /// The mean loss of the batches since the last Progress; the last one again if there were none.
  double loss = 0;
  /// The latest evaluations on test and training data, and the workers' mean step when the model
  /// was read for them.
  models::Metrics test;
  models::Metrics train;
  double evaluated_at = 0;
  std::size_t evaluations = 0;
  EvaluationCounts counts;
  /// The number of barrier draws, and of those that let a worker pass; 0 for barriers that do not
  /// sample.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
};

/// The value of a metric at which the job ends.
struct Target {
  std::string metric;
  double value = 0;
  /// Whether the metric grows when the model improves.
  bool at_least = true;
};

/// Whether `metrics` contains the target's metric, and this has reached the target's value.
[[nodiscard]] bool reached(const Target& target, const models::Metrics& metrics);

/// Called with the state of every range, to save it.
using OnCheckpoint = std::function<void(const std::vector<core::RangeState>&)>;

/// Called with the job's actors, before any of them starts.
using OnStart =
    std::function<void(const std::shared_ptr<const actor::Directory>&, caf::actor_system&)>;

/// The user's criterion to end the job, on its progress and the state of every range.
using StopWhen = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Called with the progress after an evaluation and the model that was evaluated. Returns whether
/// the job goes on.
using OnEvaluated = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Computes metrics of a model besides those that it has itself.
using ExtraMetrics = std::function<models::Metrics(const std::vector<core::RangeState>&)>;

struct JobOptions {
  core::Mode mode = core::Mode::peer;
  barrier::Barrier barrier = barrier::sampled(barrier::Ssp{4}, 2);
  /// When a waiting worker asks again; nullopt: the default of the mode.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t workers = 4;
  /// The number of server shards in central and hybrid mode; 0: one for each 4 workers, at most 8.
  std::size_t shards = 0;
  /// The step after which each worker ends.
  core::Step steps = barrier::finished;
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  std::optional<Target> until = std::nullopt;
  /// Called on a compute thread at each evaluation (see evaluate_every). If it returns true, the
  /// job ends as reached. Under bsp, the states of several ranges may be of different rounds.
  StopWhen stop_when = {};
  std::uint64_t seed = 1;

  Distribution delay = {};
  std::vector<StragglerRule> stragglers = {};
  /// The number of compute threads; 0: one for each processor.
  std::size_t compute_threads = 0;
  /// The job fails if a step throws this many times in a row.
  int attempts = 3;
  /// On several nodes: the number of replicas of each range, or all owners if there are fewer. If
  /// `copies` - 1 owners die at the same time, no update is lost.
  std::size_t copies = 2;
  /// On several nodes: how long the job waits, before it is given up, for nodes that it needs: all
  /// owners of a range, or a majority of the council.
  std::chrono::nanoseconds wait_for_nodes = std::chrono::seconds{30};

  /// Evaluates each time that the workers' mean step has grown by this much; 0: only at the end.
  core::Step evaluate_every = 0;
  /// Called on the observer's thread with each evaluation, in order, including the one at the end.
  /// If it returns false, the job ends as reached.
  OnEvaluated on_evaluated = {};
  /// Called on a compute thread at each evaluation. Its metrics are added to those on test data.
  ExtraMetrics extra_metrics = {};
  /// Whether the evaluation at the end uses the training data too.
  bool evaluate_train = true;
  /// Calls `on_checkpoint` each time that this many more steps were made: rounds under bsp, else
  /// the workers' mean step; 0: never.
  core::Step checkpoint_every = 0;
  OnCheckpoint on_checkpoint = {};

  /// Called on the observer's thread about every `progress_every`. If it returns false, the job is
  /// stopped.
  std::function<bool(const Progress&)> on_progress = {};
  std::chrono::nanoseconds progress_every = std::chrono::milliseconds{200};
  /// Stops the job when it is requested.
  std::stop_token stop = {};

  /// Called once, on the thread that runs the job, when all actors know each other and none has
  /// started. It may spawn actors of the user's (see actor/interfaces.hpp). The job ends only when
  /// these have ended: each must monitor the job's observer, and quit when that is down. The job
  /// also waits for the end of each other thread that made a caf::scoped_actor, because CAF 0.17
  /// keeps its system alive until then.
  OnStart on_start = {};

  /// Decides which actor acts next, in place of threads and the wall clock. It must outlive the
  /// job.
  TestScheduler* scheduler = nullptr;
};

/// How a job ended, with its last progress and its model.
struct Outcome {
  enum class End {
    /// The workers made all their steps.
    completed,
    /// The time was up, or the target was reached.
    reached,
    /// The user stopped the job.
    stopped,
    /// `error` says why.
    failed,
  };
  End end = End::completed;
  std::string error;
  /// The progress at the end.
  Progress last;
  /// The states of all ranges, by range. After a failure, their states before it; empty if an owner
  /// was lost.
  std::vector<core::RangeState> model;
};

/// Returns an Error if a job cannot run with these options.
[[nodiscard]] Result<void> check(const JobOptions& options);

/// Returns an Error if a job with these options cannot go on from the states `start`. The message
/// begins with a verb, and its subject is "the saved state".
[[nodiscard]] Result<void> check_start(const JobOptions& options,
                                       const std::vector<core::RangeState>& start);

/// Prepares saved states for the start of a job: makes the ledgers those of `options.workers`
/// workers in incarnation 0, which under bsp all go on from the last complete round. The values
/// keep the updates of workers that the new job does not have.
void reset_ledgers(std::vector<core::RangeState>& states, const JobOptions& options);

/// Returns the entry that each worker goes on from: the last step whose update every range holds.
[[nodiscard]] std::vector<core::LedgerEntry> first_ledger_entries(
    const std::vector<core::RangeState>& start, std::size_t workers);

/// The number of owners of a job in one process: servers or peers.
[[nodiscard]] std::size_t owner_count(const JobOptions& options);
/// The number of owners that a job on several nodes is to have, if there are as many nodes.
[[nodiscard]] std::size_t wanted_owner_count(const JobOptions& options);
/// The number of compute threads in one process: by default one for each processor; 0 if the
/// options have a scheduler.
[[nodiscard]] std::size_t compute_threads(const JobOptions& options);

/// Runs a job, and returns when it has ended. `start` has the state of every range of
/// task->layout(), with ledgers if the job goes on from a saved state. T is the element type of the
/// parameters.
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
