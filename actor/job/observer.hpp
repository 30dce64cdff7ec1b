/// The actor that collects a job's results. It has a thread of its own, and no barrier and no
/// update waits for it, so that a slow display or disk delays no worker.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "starling/actor/job/job.hpp"
#include "starling/actor/job/job_context.hpp"
#include "starling/actor/job/periodic_trigger.hpp"

namespace starling::actor {

/// Returns true if no owner has sent the values of this range.
[[nodiscard]] inline bool is_missing(const core::RangeState& state) { return !state.value.buffer; }

/// True if the job saves checkpoints of complete rounds: if it saves checkpoints and runs under
/// bsp.
[[nodiscard]] bool saves_rounds(const JobOptions& options);
/// Returns the request for the first checkpoint after `round`. Each owner has this request when it
/// is spawned, because the owner needs the request before the first push. Requires: saves_rounds().
[[nodiscard]] core::Snapshot first_checkpoint_request(const JobOptions& options, core::Step round);

/// The observer. Its phases:
///
///     running -> stopping -> collecting -> evaluating -> over
///        \--------(failure)----^
class ObserverHost : public actor::ObserverActor::base {
 public:
  using Deliver = std::function<void(Outcome)>;

  /// `first_entries` has the ledger entry from which each worker starts. Calls `deliver` with the
  /// job's outcome.
  ObserverHost(caf::actor_config& config, JobContextPtr job_context, const JobOptions& options,
               const std::vector<core::LedgerEntry>& first_entries, Deliver deliver);

  actor::ObserverActor::behavior_type make_behavior() override;
  /// Releases the directory: its actors refer to each other, and the cycle would never be freed.
  void on_exit() override {
    directory_.reset();
    actors_.reset();
  }

 private:
  enum class Phase { running, stopping, collecting, evaluating, over };
  /// Why the ranges' states are collected: for an evaluation, a checkpoint, or the job's outcome.
  enum class Purpose { evaluate, save, outcome };
  /// The states of all ranges, which are requested from the owners with one request id.
  struct Collection {
    Purpose purpose;
    std::uint64_t request_id;
    /// The workers' mean step at the time of the request.
    double step;
    std::optional<double> data_epoch;
    std::vector<core::RangeState> states;
    /// Each worker's step at the time of the request: owners had acknowledged its updates up to
    /// this step.
    std::vector<core::LedgerEntry> acknowledged;
  };

  void on_report(const actor::Report& report);
  void count_step(core::Step from, const actor::Report& report);
  void on_state(const core::RangeState& state);
  void raise_to_acknowledged(core::RangeState& state,
                             const std::vector<core::LedgerEntry>& acknowledged) const;
  void on_evaluated(const actor::Evaluated& evaluated);
  void on_failure(const actor::Failure& failure);
  void on_tick();

  /// Runs one of the user's callbacks, whose name is `callback`. If it throws, the job fails.
  template <class F>
  void call(std::string_view callback, F&& run) {
    if (auto fault = run_catching(std::forward<F>(run)))
      on_failure({std::string{callback} + ": " + *std::move(fault)});
  }
  void save(const std::vector<core::RangeState>& states);
  /// Prepares to collect the states of a round, with which the owners answer the request.
  void expect_round(std::uint64_t request_id);
  void request_round_after(core::Step round);
  void stop(Outcome::End why);
  void collect_what_is_due();
  void collect(Purpose purpose);
  void on_collected(Collection collection);
  /// In central mode, asks the coordinator for its figures, and calls `then` once the coordinator
  /// has answered or has failed to answer. In other modes, calls `then` at once.
  void ask_coordinator(std::function<void()> then);
  void evaluate_next();
  void evaluate(std::vector<core::RangeState> states, double step, std::optional<double> data_epoch,
                bool is_final);
  [[nodiscard]] std::size_t waiting_evaluations() const;
  void drop_evaluations();
  void count_final_evaluation();
  void begin_final_evaluation();
  /// Calls the user's on_progress.
  void report_progress();
  void check_target();
  /// Delivers the outcome.
  void finish();
  void update_figures();
  void update_deal_figures();
  /// Sets the loss of the figures. If `keeps_losses`, on_progress gets these losses too.
  void update_loss(bool keeps_losses = false);
  [[nodiscard]] double mean_step() const;

  JobContextPtr job_context_;
  const JobOptions& options_;
  Deliver deliver_;
  actor::DirectoryPtr directory_;
  /// The answer to the user's own actors when they ask for the job's actors; null if the job has no
  /// on_start.
  actor::JobActorsPtr actors_;

  Phase phase_ = Phase::running;
  Outcome outcome_;
  Progress figures_;
  /// In central mode: what the coordinator has last reported.
  std::optional<core::StepsReport> coordinated_;
  /// By worker: its last report, and when it made its last step (the maximum time until then).
  std::vector<actor::Report> reports_;
  std::vector<core::Time> ended_at_;
  std::size_t running_workers_;
  /// The losses reported since the figures were updated last.
  double loss_sum_ = 0;
  std::uint64_t loss_count_ = 0;
  /// The number of steps computed since the job started, without those of a saved state.
  std::uint64_t computed_steps_ = 0;
  /// For each step, the number of running workers that are at this step in their last report.
  std::map<core::Step, std::size_t> workers_at_step_;
  /// The highest last step of the workers that have ended.
  core::Step highest_ended_ = 0;

  /// The sum of the workers' reported steps.
  std::uint64_t steps_sum_ = 0;

  std::uint64_t last_request_id_;
  /// The collections in progress, by request id. A complete one for an evaluation stays until the
  /// evaluation begins.
  std::deque<Collection> collections_;
  /// The most evaluations that may wait.
  std::size_t waiting_evaluations_max_;
  /// The model that reached the target; empty before. It is the job's result, although workers may
  /// make further steps before they stop.
  std::vector<core::RangeState> reached_model_;
  /// The request id of the next round to be saved, and the states of that round that have arrived;
  /// 0 if no rounds are saved.
  std::uint64_t round_request_id_ = 0;
  std::vector<core::RangeState> round_states_;
  bool is_evaluating_ = false;
  /// The model that is being evaluated, and the workers' mean step when it was requested.
  std::vector<core::RangeState> evaluated_model_;
  double evaluated_at_ = 0;
  std::optional<double> evaluated_epoch_;
  core::Time next_progress_at_{};
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  /// When the observer of a failed job stops waiting for the owners' ranges.
  core::Time give_up_at_ = core::Time::max();
};

}  // namespace starling::actor
