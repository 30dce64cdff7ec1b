/// Watches a job on nodes to its end, with the output, evaluations and checkpoints that a local
/// training has.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "starling/actor/job/periodic_trigger.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Blocking; one thread.
class JobWatcher {
 public:
  /// The fate of the job if this program is interrupted or cannot write its files.
  enum class OnLeave { stop_job, leave_running };
  /// How watching ended.
  enum class End {
    /// The job has ended, and its nodes still hold it.
    ended,
    /// The nodes have dropped the job.
    dropped,
    /// The watcher has left the job, which goes on.
    left,
    /// None of the job's nodes answers; the job may go on.
    unreachable,
  };

  /// Requires: what the references refer to outlives the object.
  JobWatcher(Follower& follower, Recorder& recorder, const PreparedRun& ready, OnLeave on_leave);

  /// Watches until the job ends or this program leaves it. The outcome then has the model if the
  /// job has ended and all ranges could be fetched.
  [[nodiscard]] End run();
  [[nodiscard]] const actor::Outcome& outcome() const { return outcome_; }
  /// The number of incarnations of workers that died or left before the end.
  [[nodiscard]] std::uint64_t workers_lost() const { return workers_lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  using States = std::vector<core::RangeState>;

  [[nodiscard]] const actor::TrainOptions& job() const { return ready_.running.options; }
  [[nodiscard]] End follow();
  void update_from(const JobReport& report);
  /// Skips the evaluations and checkpoints that were due before `step`, the first step seen of a
  /// job that was running already.
  void skip_until(double step);
  /// Warns that the job is blocked, once for each reason.
  void report_blocked(const std::string& reason);
  [[nodiscard]] bool is_time_up() const;
  void note_early_end();
  void stop(actor::Outcome::End why);
  /// Evaluates the model if the workers have come to a step at which that is due.
  void evaluate_if_due(double step);
  void evaluate(double step);
  /// Keeps the model that reached the target of `until`; if a checkpoint is asked for and can be
  /// fetched, keeps that in its place. Returns false if the checkpoint is below the target again.
  [[nodiscard]] bool keep_target_model(States model);
  void count_final_evaluations();
  void save_if_due(double step);
  void save(double step);
  /// Returns the time until the next poll, which is shorter if an evaluation is due sooner.
  [[nodiscard]] std::chrono::nanoseconds time_to_next_poll();
  [[nodiscard]] Result<States> fetch_states(FetchTimeouts timeouts, int tries);
  void fetch_final_model();

  Follower& follower_;
  Recorder& recorder_;
  const PreparedRun& ready_;
  const OnLeave on_leave_;
  const core::Layout layout_;
  actor::PeriodicTrigger evaluations_;
  actor::PeriodicTrigger checkpoints_;
  /// True if a checkpoint is due and could not be fetched yet.
  bool must_save_ = false;
  /// The mean step of the workers at the last poll, and the time of that poll.
  double step_ = 0;
  Clock::time_point polled_at_ = Clock::now();
  /// Steps of a worker a second between the last two polls.
  double steps_per_s_ = 0;
  /// True once a step of a worker was seen.
  bool has_begun_ = false;
  bool is_stopping_ = false;
  /// The earliest time at which a checkpoint that could not be fetched is fetched again.
  Clock::time_point next_save_at_{};
  /// The error of the last try to fetch a checkpoint.
  std::string last_save_error_;
  std::string blocked_reason_;
  /// The model that reached the target of `until`; empty if none has.
  States target_model_;
  actor::Outcome outcome_;
  std::uint64_t workers_lost_ = 0;
};

}  // namespace starling::program
