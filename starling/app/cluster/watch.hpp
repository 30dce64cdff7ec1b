/// A job that nodes run, followed to its end from outside, as whoever trains at home sees it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "starling/app/cluster/follower.hpp"
#include "starling/app/recorder.hpp"
#include "starling/engine/live/milestones.hpp"

namespace starling::app {

class Watch {
 public:
  /// What becomes of the job where its follower is interrupted or cannot write its files.
  enum class Unwanted { stops, goes_on };
  enum class End {
    /// Its nodes hold the job as it ended.
    ended,
    /// They hold it no more.
    dropped,
    /// Nobody follows it any more, and it goes on.
    left,
    /// None of its nodes answers; it may go on.
    lost,
  };

  /// All outlive it.
  Watch(Follower& follower, Recorder& recorder, const Prepared& ready, Unwanted unwanted);

  /// The outcome has the model where the job has ended and all of it could be had.
  [[nodiscard]] End run();
  [[nodiscard]] const live::Outcome& outcome() const { return outcome_; }
  /// Workers that died or left before the end.
  [[nodiscard]] std::uint64_t workers_lost() const { return workers_lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  using States = std::vector<core::RangeState>;

  [[nodiscard]] const live::TrainOptions& job() const { return ready_.running.options; }
  [[nodiscard]] End follow();
  void take(const JobNews& news);
  /// Milestones before the first step that is seen of a job that others have begun are not due.
  void begin_at(double step);
  /// Once, until it changes.
  void tell_hindrance(const std::string& hindrance);
  [[nodiscard]] bool is_time_up() const;
  void end();
  void stop(live::Outcome::End why);
  /// Evaluates the model where the workers have come to a step at which that is due.
  void evaluate_if_due(double step);
  void evaluate(double step);
  /// The model that reached the target is kept, as one that a job can go on from where that is to
  /// be saved and can be had. False where the job is past that model and below the target again.
  [[nodiscard]] bool keep_reached(States model);
  void count_the_end();
  void save_if_due(double step);
  void save(double step);
  /// Until the next look: shorter where an evaluation is due before.
  [[nodiscard]] std::chrono::nanoseconds pause();
  [[nodiscard]] Result<States> states(Patience patience, int tries);
  void fetch();

  Follower& follower_;
  Recorder& recorder_;
  const Prepared& ready_;
  const Unwanted unwanted_;
  const core::Layout layout_;
  live::Milestones evaluations_;
  live::Milestones checkpoints_;
  /// A checkpoint is due that was not to be had yet.
  bool must_save_ = false;
  /// The mean step at the last look, and when that was.
  double step_ = 0;
  Clock::time_point looked_ = Clock::now();
  /// Steps a second between the last two looks.
  double rate_ = 0;
  /// Steps were seen.
  bool has_begun_ = false;
  bool stopping_ = false;
  /// Not before, where a checkpoint could not be had.
  Clock::time_point save_again_{};
  /// The last that kept a checkpoint from being written.
  std::string last_error_;
  std::string hindrance_;
  /// The model that reached the target.
  States reached_;
  live::Outcome outcome_;
  std::uint64_t workers_lost_ = 0;
};

}  // namespace starling::app
