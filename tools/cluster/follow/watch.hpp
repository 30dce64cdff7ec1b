/// Follows a job that nodes run to its end, with the output that a local training has.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "starling/actor/job/periodic_trigger.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

class Watch {
 public:
  /// The fate of the job where its follower is interrupted or cannot write its files.
  enum class Unwanted { stops, goes_on };
  enum class End {
    /// Its nodes hold the job as it ended.
    ended,
    /// Its nodes have dropped the job.
    dropped,
    /// The follower has left, and the job goes on.
    left,
    /// None of its nodes answers; it may go on.
    lost,
  };

  /// All references outlive the object.
  Watch(Follower& follower, Recorder& recorder, const Prepared& ready, Unwanted unwanted);

  /// The outcome has the model where the job has ended and all of it could be had.
  [[nodiscard]] End run();
  [[nodiscard]] const actor::Outcome& outcome() const { return outcome_; }
  /// Workers that died or left before the end.
  [[nodiscard]] std::uint64_t workers_lost() const { return workers_lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  using States = std::vector<core::RangeState>;

  [[nodiscard]] const actor::TrainOptions& job() const { return ready_.running.options; }
  [[nodiscard]] End follow();
  void take(const JobNews& news);
  /// Leaves out what was due before `step`, the first that is seen, of a job that runs already.
  void begin_at(double step);
  /// Warns that the job is blocked, once for each reason.
  void report_blocked(const std::string& reason);
  [[nodiscard]] bool is_time_up() const;
  void end();
  void stop(actor::Outcome::End why);
  /// Evaluates the model where the workers have come to a step at which that is due.
  void evaluate_if_due(double step);
  void evaluate(double step);
  /// Keeps the model that reached the target, as a cut to resume from where a checkpoint is asked
  /// for and can be fetched. False where the job is past that model and below the target again.
  [[nodiscard]] bool keep_reached(States model);
  void count_the_end();
  void save_if_due(double step);
  void save(double step);
  /// Returns the time until the next look, shorter where an evaluation is due sooner.
  [[nodiscard]] std::chrono::nanoseconds pause();
  [[nodiscard]] Result<States> states(Patience patience, int tries);
  void fetch();

  Follower& follower_;
  Recorder& recorder_;
  const Prepared& ready_;
  const Unwanted unwanted_;
  const core::Layout layout_;
  actor::PeriodicTrigger evaluations_;
  actor::PeriodicTrigger checkpoints_;
  /// A checkpoint is due that could not be fetched yet.
  bool must_save_ = false;
  /// The mean step at the last look, and when that was.
  double step_ = 0;
  Clock::time_point looked_ = Clock::now();
  /// Steps a second between the last two looks.
  double rate_ = 0;
  /// True once steps were seen.
  bool has_begun_ = false;
  bool stopping_ = false;
  /// The earliest time of the next try, after a checkpoint could not be fetched.
  Clock::time_point save_again_{};
  /// The last error that kept a checkpoint from being written.
  std::string last_error_;
  std::string blocked_reason_;
  /// The model that reached the target.
  States reached_;
  actor::Outcome outcome_;
  std::uint64_t workers_lost_ = 0;
};

}  // namespace starling::program
