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
#include "starling/barrier/tuner.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/result.hpp"
#include "starling/base/straggler.hpp"
#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/exchange/exchange.hpp"
#include "starling/models/sample_order.hpp"

namespace caf {
class actor_system;
}
namespace starling::actor {
struct JobActors;
}

namespace starling::actor {

class Timeline;

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
  /// Left out because a later evaluation was due by the time that the workers' reports arrived.
  std::uint64_t outrun = 0;
  /// Left out because the queue of evaluations was full.
  std::uint64_t crowded = 0;
  /// Left out because the model could not be read.
  std::uint64_t missing = 0;
  /// Left out because the job was stopped, or its time was up.
  std::uint64_t ended = 0;

  [[nodiscard]] std::uint64_t left_out() const { return outrun + crowded + missing + ended; }
};

/// The progress of a running job, from the workers' latest reports.
struct Progress {
  core::Time elapsed{};
  /// The number of updates: the sum of the workers' steps.
  std::uint64_t updates = 0;
  Spread spread;
  /// The largest difference so far between two workers' reported steps; in central mode, at the
  /// end, the exact one from the coordinator.
  core::Step max_lag = 0;
  /// The share of the workers' time in which they waited at barriers, 0 to 1.
  double waiting_share = 0;
  /// The mean time of a step without injected delays and barriers: the time for reading, computing,
  /// pushing, and waiting for a processor.
  core::Time mean_work_time{};
  /// The mean loss of the batches since the last Progress that on_progress got or, if the job has
  /// no on_progress, since the last Progress; if there were no batches, the loss of that Progress.
  double loss = 0;
  /// The metrics of the latest evaluation on test data and on training data.
  models::Metrics test;
  models::Metrics train;
  /// The workers' mean step, and how often they had visited the data, when the evaluated model was
  /// read.
  double evaluated_at = 0;
  std::optional<double> evaluated_epoch = std::nullopt;
  /// On a cluster, where workers come and go: the mean step of those present, and the updates that
  /// had been made when the evaluated model was read.
  std::optional<double> mean_step = std::nullopt;
  std::optional<std::uint64_t> evaluated_updates = std::nullopt;
  /// The number of evaluations so far.
  std::size_t evaluations = 0;
  EvaluationCounts counts;
  /// The number of barrier draws, and of those that let a worker pass; 0 for barriers that do not
  /// sample.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The latest s and beta of the workers; zeros unless the barrier tunes itself.
  barrier::TunedSum tuned = {};
  /// The reads of all workers; zeros under exchanges whose reads are local.
  core::ReadCounts reads = {};
  /// If the samples were dealt anew because the workers have changed: how many epochs the workers
  /// have taken on average, and the last step of the worker that makes the most steps.
  std::optional<double> data_epoch = std::nullopt;
  std::optional<core::Step> last_step = std::nullopt;
  /// By worker: how many samples it takes at a step; empty unless batches are dynamic.
  std::vector<std::uint64_t> batches = {};
  /// At the end, in one process, if workers hand in early: the longest time for which a sample was
  /// not visited.
  std::optional<core::Time> longest_gap = std::nullopt;

  /// Returns the mean step of the workers. Requires: the job began with `workers` workers, at least
  /// one.
  [[nodiscard]] double mean_step_of(std::size_t workers) const {
    return mean_step.value_or(static_cast<double>(updates) / static_cast<double>(workers));
  }
};

/// The value of a metric at which the job ends.
struct Target {
  std::string metric;
  double value = 0;
  /// True if values of at least `value` reach the target; false if values of at most `value` do.
  bool at_least = true;
};

/// Returns true if `metrics` contains the target's metric, and the metric has reached the target's
/// value.
[[nodiscard]] bool reached(const Target& target, const models::Metrics& metrics);

/// Called with the state of every range, to save it. If batches are dynamic or workers hand in
/// early, the callback gets the last deals too, the latest one last.
using OnCheckpoint = std::function<void(const std::vector<core::RangeState>&,
                                        const std::vector<std::shared_ptr<const core::Deal>>&)>;

/// Called with the job's actors, before any of them starts.
using OnStart =
    std::function<void(const std::shared_ptr<const actor::JobActors>&, caf::actor_system&)>;

/// Returns true to end the job, given its progress and the state of every range.
using StopWhen = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Called with the progress after an evaluation, and with the model that was evaluated. Returns
/// whether the job goes on.
using OnEvaluated = std::function<bool(const Progress&, const std::vector<core::RangeState>&)>;

/// Computes further metrics of a model, besides those of Task::evaluate().
using ExtraMetrics = std::function<models::Metrics(const std::vector<core::RangeState>&)>;

struct JobOptions {
  core::Mode mode = core::Mode::peer;
  barrier::Barrier barrier = barrier::sampled(barrier::Ssp{4}, 2);
  /// When a worker that waits at its barrier draws again; nullopt: the default of the mode.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  /// The name of an exchange: how workers' updates reach others (core/training/exchanges.hpp).
  std::string exchange = "owners";
  /// True if a worker keeps what it has read, and reads again only what is too old for the barrier
  /// (core::check_cache()).
  bool cache = false;
  std::size_t workers = 4;
  /// The number of server shards in central and hybrid mode; 0: one for each 4 workers, at most 8.
  std::size_t shards = 0;
  /// The step after which each worker ends.
  core::Step steps = barrier::unlimited;
  /// After this time the job ends with Outcome::End::reached.
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  /// When an evaluation on test data reaches this target, the job ends with End::reached. The job
  /// fails if an evaluation has no such metric.
  std::optional<Target> until = std::nullopt;
  /// Called on a compute thread at each evaluation (see evaluate_every). If it returns true, the
  /// job ends with End::reached. Under bsp, the states of several ranges may be of different
  /// rounds.
  StopWhen stop_when = {};
  std::uint64_t seed = 1;
  /// If the job resumes from a saved state with other workers: how samples were dealt before.
  std::vector<models::FormerDeal> former_deals = {};

  /// An artificial delay: each worker waits for this time after each computation.
  Distribution delay = {};
  std::vector<StragglerRule> stragglers = {};
  /// The number of compute threads; 0: one for each processor.
  std::size_t compute_threads = 0;
  /// The job fails if a step throws this many times in a row.
  int attempts = 3;
  /// On several nodes: the replication factor of each range; if there are fewer owners, each owner
  /// has a replica. If `replication_factor` - 1 owners die at the same time, no update is lost.
  std::size_t replication_factor = 2;
  /// On several nodes: how long the job waits while no owner of some range answers, or no majority
  /// of the council. Then the job is given up.
  std::chrono::nanoseconds wait_for_nodes = std::chrono::seconds{30};

  /// Evaluates each time that the workers' mean step reaches a multiple of this; 0: only at the
  /// end.
  core::Step evaluate_every = 0;
  /// Called on the observer's thread with each evaluation, in order, including the one at the end.
  /// If it returns false, the job ends with End::reached.
  OnEvaluated on_evaluated = {};
  /// Called on a compute thread at each evaluation. Its metrics are added to those on test data.
  ExtraMetrics extra_metrics = {};
  /// True if the evaluation at the end uses the training data too.
  bool evaluate_train = true;
  /// Calls `on_checkpoint` each time that a multiple of this is reached: under bsp by the number of
  /// complete rounds, else by the workers' mean step; 0: never.
  core::Step checkpoint_every = 0;
  OnCheckpoint on_checkpoint = {};

  /// Called on the observer's thread about every `progress_every`. If it returns false, the job is
  /// stopped.
  std::function<bool(const Progress&)> on_progress = {};
  std::chrono::nanoseconds progress_every = std::chrono::milliseconds{200};
  /// Stops the job when it is requested.
  std::stop_token stop = {};

  /// Called once, when all actors know each other and none has started. In one process, the thread
  /// that runs the job calls it; on a node, a thread of the job does, and the node waits up to 20 s
  /// until it returns. It may spawn actors of the user's (see actor/interfaces.hpp). The job ends
  /// only when these actors have ended: each must monitor JobActors::job, and quit when that actor
  /// has ended. The job also waits until each thread of the user's that made a caf::scoped_actor
  /// has ended, because CAF 0.17 keeps the actor system alive until then.
  OnStart on_start = {};

  /// Records what each worker does when (job/timeline.hpp), in one process only; null: records
  /// nothing. It was made for `workers` workers, and must outlive the job.
  Timeline* timeline = nullptr;

  /// Runs the actors in place of threads and the wall clock, for tests; null: no scheduler. It must
  /// outlive the job.
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
  /// The states of all ranges, by range. After a failure, their last states before the failure,
  /// whose values may not be finite; empty if an owner was lost.
  std::vector<core::RangeState> model;
  /// If batches are dynamic or workers hand in early, in one process: the last deals, the latest
  /// one last.
  std::vector<std::shared_ptr<const core::Deal>> deals = {};
  /// In one process, if `model` is an earlier model, which reached the target: the states of all
  /// ranges at the end of the job. Empty otherwise.
  std::vector<core::RangeState> end_states = {};
};

/// Returns an Error if a job cannot run with these options.
[[nodiscard]] Result<void> check(const JobOptions& options);

/// Returns an Error if a job with these options cannot go on from `initial_states`. The message
/// begins with a verb ("holds ..."): the caller puts the subject, "the saved state", before it.
[[nodiscard]] Result<void> check_initial_states(
    const JobOptions& options, const std::vector<core::RangeState>& initial_states);

/// Prepares saved states for the start of a job: changes the ledgers to `options.workers` workers
/// in incarnation 0. Under bsp, all of them go on from the last complete round, unless the exchange
/// is itself the barrier: its workers may have stopped at different steps. The values keep the
/// updates of workers that the new job does not have.
void reset_ledgers(std::vector<core::RangeState>& states, const JobOptions& options);

/// Returns the ledger entry from which each worker goes on: the last step whose update every range
/// holds.
[[nodiscard]] std::vector<core::LedgerEntry> first_ledger_entries(
    const std::vector<core::RangeState>& initial_states, std::size_t workers);

/// The number of owners of a job in one process: servers or peers.
[[nodiscard]] std::size_t owner_count(const JobOptions& options);
/// Returns the number of ranges in a configuration of the job, whose model has `ranges` ranges: all
/// of them, or 0 if the job's exchange has no owners. Requires: the exchange is known.
[[nodiscard]] std::size_t placed_ranges(const JobOptions& options, std::size_t ranges);
/// The number of owners that a job on several nodes is to have, if there are as many nodes.
[[nodiscard]] std::size_t requested_owner_count(const JobOptions& options);
/// The number of compute threads in one process: by default one for each processor; 0 if the
/// options have a scheduler.
[[nodiscard]] std::size_t compute_threads(const JobOptions& options);

/// Runs a job, and returns when the job has ended. `initial_states` has the state of every range of
/// task->layout(), with ledgers if the job resumes from a saved state. `deal` says how samples are
/// dealt; only dynamic batches and workers that hand in early need it.
[[nodiscard]] Result<Outcome> run_job(const JobOptions& options, std::shared_ptr<Task> task,
                                      core::ApplierPtr applier,
                                      std::vector<core::RangeState> initial_states,
                                      core::DealOptions deal = {});

}  // namespace starling::actor
