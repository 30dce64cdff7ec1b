/// Watches a job on nodes until it ends, and shows, evaluates and saves it like a training job in
/// this process.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/job/periodic_trigger.hpp"
#include "starling/tools/cluster/follow/blocked_notice.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Blocking; one thread.
class JobWatcher {
 public:
  /// The fate of the job if this program is interrupted or cannot write its files.
  enum class OnLeave { stop_job, leave_running };
  /// The reason why run() has returned.
  enum class End {
    /// The job has ended, and its nodes still hold it.
    ended,
    /// The nodes have dropped the job.
    dropped,
    /// This program was interrupted or could not write its files, and the job goes on.
    goes_on,
    /// None of the job's nodes answers; the job may go on.
    unreachable,
  };

  /// Calls `after_poll`, if it is not empty, each time that the follower has polled. Requires: the
  /// referenced objects outlive this one.
  JobWatcher(Follower& follower, Recorder& recorder, const RecordedRun& run, OnLeave on_leave,
             std::function<void()> after_poll = {});

  /// Watches the job until one of the reasons of End arises.
  [[nodiscard]] End run();
  /// The outcome of the job once run() has returned. It has the model if the job has ended and all
  /// ranges could be fetched.
  [[nodiscard]] const actor::Outcome& outcome() const { return outcome_; }
  /// The fates of the workers; see JobReport::workers.
  [[nodiscard]] const WorkerFates& workers() const { return workers_; }

 private:
  using Clock = std::chrono::steady_clock;
  using States = std::vector<core::RangeState>;

  [[nodiscard]] const actor::TrainOptions& job() const { return run_.resolved.options; }
  /// Does the work of run() except for fetching the final model.
  [[nodiscard]] End follow();
  /// Takes over the progress of a report, and estimates the workers' speed.
  void update_from(const JobReport& report);
  /// If the job was running before this program followed it (OnLeave is leave_running), skips the
  /// evaluations and checkpoints that were due before `step`, the first mean step that this program
  /// has seen.
  void skip_triggers_before(double step);
  /// Warns, as BlockedNotice decides, that the job is blocked for `reason` or, if that is empty,
  /// that the job goes on.
  void report_blocked(const std::string& reason);
  [[nodiscard]] bool is_time_up() const;
  /// Sets the outcome if workers have ended before their last step and this program did not stop
  /// them: the time was up, another program stopped the job, or nodes have left.
  void set_early_end();
  /// Makes follow() ask the nodes to stop the job, with `end` as its outcome.
  void stop(actor::Outcome::End end);
  /// Evaluates the model if an evaluation is due at the workers' mean step `step`. If the model
  /// cannot be fetched or evaluated, as while nodes come or go, each later call tries again for
  /// `evaluation_retry_time`; then the evaluation counts as missing.
  void evaluate_if_due(double step);
  /// Fetches and evaluates the current model. Returns false if it cannot be fetched or evaluated
  /// now.
  [[nodiscard]] bool evaluate(double step);
  /// Keeps the model that reached the target of `until` as the final one. If the user asked for a
  /// checkpoint and one can be fetched, keeps that instead. Returns false if the model of the
  /// checkpoint no longer reaches the target.
  [[nodiscard]] bool keep_model_at_target(States model);
  /// Counts the evaluations that were due since the last one. The final evaluation also counts as
  /// the one that is due at the last step.
  void count_final_evaluations();
  /// Saves a checkpoint if one is due at the mean step `step`, or if the last one could not be
  /// fetched.
  void save_if_due(double step);
  /// Tries to fetch and save a checkpoint. After a failure, does nothing before `next_save_at_`.
  void save(double step);
  /// Returns the time until the next poll, which is shorter if an evaluation is due sooner.
  [[nodiscard]] std::chrono::nanoseconds time_to_next_poll();
  /// Fetches a cut, and passes its former deals and its number of updates to the recorder.
  [[nodiscard]] Result<States> fetch_cut(FetchTimeouts timeouts);
  /// If the user asked for a checkpoint, tries `tries` times to fetch a cut from which a job can
  /// resume. Else, or if no try succeeds, fetches the values alone.
  [[nodiscard]] Result<States> fetch_states(FetchTimeouts timeouts, int tries);
  /// Evaluates the last model. Tries a few times, but not again once is_interrupted() has become
  /// true. Warns and returns false if it does not succeed.
  [[nodiscard]] bool evaluate_finally();
  /// Fetches and evaluates the model of the job that has ended.
  void fetch_final_model();

  Follower& follower_;
  Recorder& recorder_;
  const RecordedRun& run_;
  const OnLeave on_leave_;
  const std::function<void()> after_poll_;
  const core::Layout layout_;
  static constexpr std::chrono::seconds evaluation_retry_time{6};
  actor::PeriodicTrigger evaluations_;
  /// When the evaluation that has not succeeded yet became due; absent if no evaluation is due.
  std::optional<Clock::time_point> evaluation_due_at_;
  /// How long after the job's start its workers had ended; absent before that.
  std::optional<core::Time> ended_after_;
  /// Why the last try to evaluate has failed, empty if it has not; and the last error that the user
  /// was warned of.
  std::string evaluation_error_;
  std::string warned_evaluation_error_;
  actor::PeriodicTrigger checkpoints_;
  /// True if a checkpoint is due and was not fetched yet.
  bool must_save_ = false;
  /// The mean step of the workers at the last poll, and the time of that poll.
  double step_ = 0;
  Clock::time_point polled_at_ = Clock::now();
  /// Steps per second of a worker between the last two polls.
  double steps_per_s_ = 0;
  /// True once a report had the step of a worker.
  bool has_begun_ = false;
  bool is_stopping_ = false;
  /// The earliest time of the next try to fetch a checkpoint.
  Clock::time_point next_save_at_{};
  /// The error of the last try to fetch a checkpoint.
  std::string last_save_error_;
  BlockedNotice blocked_;
  /// The model that reached the target of `until`; empty if none has.
  States model_at_target_;
  actor::Outcome outcome_;
  WorkerFates workers_;
  bool has_made_all_steps_ = false;
};

}  // namespace starling::program
