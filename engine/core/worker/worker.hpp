/// A worker's protocol: read the parameters, compute, push, and pass the barrier, step after step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"
#include "starling/engine/core/worker/worker_configuration.hpp"

namespace starling::core {

/// A range that a worker reads in a step, or rows of it.
struct RangeRows {
  RangeId range;
  Rows rows;
};

/// The update that a worker computed in one step: one part for each range that it changes.
struct Update {
  struct Part {
    RangeId range;
    Slice values;
  };
  std::vector<Part> parts;
  std::uint32_t samples = 0;
};

struct WorkerOptions {
  MemberId id = 0;
  Incarnation incarnation = 0;
  /// The number of steps that the worker has finished at the start; more than 0 if the job resumes
  /// from a checkpoint.
  Step first_step = 0;
  /// The number of samples of the steps up to `first_step`.
  std::uint64_t samples = 0;
  /// The worker ends after this step.
  Step last_step = barrier::finished;
  /// True if a coordinator keeps the workers' steps; false if workers ask one another.
  bool central = true;
  /// True in bulk-synchronous jobs: owners apply a step when the pushes of all workers have come.
  bool bsp = false;
  /// True if the worker asks before each step which ranges the step needs (Plan). False if each
  /// step needs all ranges.
  bool asks_for_plan = false;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// All workers of the job; needed if workers ask one another for their steps.
  WorkerIds workers;
  /// The primary owner of each range.
  std::shared_ptr<const std::vector<OwnerId>> owner_of;
  /// The configuration epoch of each range's present owners (Ownership::owner_epoch). Absent if
  /// owners never change.
  std::shared_ptr<const std::vector<Epoch>> owner_epochs = nullptr;
  /// True if the job runs already: the worker first asks at which step to begin.
  bool joins = false;
  /// At most this many pulls or pushes to one owner are in flight, each of one range. This bounds
  /// how much of a large model is in flight. At least 1.
  std::size_t window = 64;
  /// The job fails when one step has failed this many times in a row.
  int attempts = 3;
};

/// One call at a time; not thread-safe. Repeated or late messages do no harm. No timer makes the
/// worker send a message again, except the queries of its SampleGate: messages must not get lost.
///
///     start -> [entering] -> [planning] -> pulling -> computing -> pushing -> waiting
///                               ^                                                |
///                               +-------------- passes the barrier --------------+
///
/// The worker is done after its last step, or when it is stopped. It has failed if planning or
/// computing a step has failed `attempts` times in a row.
class Worker {
 public:
  explicit Worker(WorkerOptions options);

  void start(const Context& context);

  /// The answer to the Plan effect of `step`; ignored if the worker has moved on. Requires:
  /// `wanted` names each range at most once.
  void on_plan(const Context& context, Step step, std::vector<RangeRows> wanted);
  /// The answer to the Compute effect of `step`; ignored if the worker has moved on.
  void on_update(const Context& context, Step step, Update update);
  /// Planning or computing the step after `step` threw an exception. The worker asks for it again;
  /// after `attempts` failures in a row it ends the job (Fail).
  void on_failure(const Context& context, Step step, const std::string& why);
  void on_timer(const Context& context);
  /// Owners or workers have changed. Sends the pulls and pushes that former owners have not
  /// answered to the new owners.
  void on_configuration(const Context& context, WorkerConfiguration next);

  void on(const Context& context, const Value& value);
  void on(const Context& context, const Ack& ack);
  void on(const Context& context, const Proceed& proceed);
  void on(const Context& context, const Stop& stop);
  void on(const Context& context, const StepQuery& query);
  void on(const Context& context, const StepAnswer& answer);
  void on(const Context& context, const NotifyRequest& request);
  void on(const Context& context, const Notice& notice);

  /// Returns the status for a coordinator that does not know this worker yet. If there is a
  /// coordinator, the core's driver sends it the status when the worker joins, because the worker
  /// itself does not ask the coordinator at which step to begin. Requires: start() was called.
  [[nodiscard]] WorkerStatus status() const;

  [[nodiscard]] Step step() const noexcept { return step_; }
  /// The number of samples of the finished steps.
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// The time spent waiting at barriers, without the present wait.
  [[nodiscard]] Time waited() const noexcept { return waited_; }
  /// The time spent waiting at barriers up to `now`, with the present wait.
  [[nodiscard]] Time waited(Time now) const noexcept {
    return is_waiting() ? waited_ + (now - wait_started_at_) : waited_;
  }
  [[nodiscard]] bool is_waiting() const noexcept { return phase_ == Phase::waiting; }
  [[nodiscard]] bool is_done() const noexcept { return phase_ == Phase::done; }
  /// Returns false until the worker knows its first step and, in bulk-synchronous jobs, all owners
  /// hold its entry.
  [[nodiscard]] bool begun() const noexcept {
    return phase_ != Phase::idle && phase_ != Phase::entering && !is_entry_;
  }
  [[nodiscard]] const WorkerOptions& options() const noexcept { return options_; }
  /// The draws and passes of the worker's SampleGate; zero in central mode.
  [[nodiscard]] SampleGate::Counts draw_counts() const;
  /// How often others have drawn this worker and asked for its step.
  [[nodiscard]] std::uint64_t drawn() const noexcept { return drawn_; }

 private:
  enum class Phase { idle, entering, planning, pulling, computing, pushing, waiting, done, failed };

  void enter(const Context& context);
  void begin_at(const Context& context, Step first);
  void push_entry(const Context& context);
  void begin_step(const Context& context);
  /// Begins the first step or passes the barrier, after the gate has allowed it.
  void go_on(const Context& context);
  [[nodiscard]] Epoch owner_epoch(RangeId range) const;
  // In the functions below, `part` is a position in plan_ while the worker is pulling, and in
  // update_.parts while it is pushing.
  [[nodiscard]] RangeId range_of(std::uint32_t part) const;
  [[nodiscard]] bool is_answered(std::uint32_t part) const;
  void send_all(const Context& context);
  void send_unsent(const Context& context);
  void send_or_queue(const Context& context, std::uint32_t part);
  void send_part(const Context& context, std::uint32_t part);
  void send_next(const Context& context, std::uint32_t part);
  void pull(const Context& context);
  void push(const Context& context);
  void finish_step(const Context& context);
  void ask_to_pass_barrier(const Context& context);
  void pass_barrier(const Context& context);
  void finish(const Context& context);
  void send_ended(const Context& context) const;
  void send_ended_to_owners(const Context& context) const;
  void notify_waiters(const Context& context);
  [[nodiscard]] Step reported_step() const noexcept;

  WorkerOptions options_;
  std::optional<SampleGate> gate_;
  /// The owners of all ranges, ascending.
  std::vector<OwnerId> owners_;

  Phase phase_ = Phase::idle;
  Step step_;
  std::uint64_t samples_;
  bool stopping_ = false;
  /// True while the worker pushes its entry (see push_entry()).
  bool is_entry_ = false;
  int failures_ = 0;

  /// The ranges that the worker reads in the present step.
  std::vector<RangeRows> plan_;
  /// The values pulled, in the plan's order; a value that has not come yet has no buffer.
  std::vector<Value> values_;
  /// The position in the plan by range, or not_planned.
  std::vector<std::uint32_t> position_;
  /// The update that is being pushed, sorted by range; kept until every owner holds it.
  Update update_;
  /// For each part of update_: true if it is not acknowledged yet.
  std::vector<bool> unacknowledged_;
  /// The number of parts, of the plan or of the update, that have no answer yet.
  std::size_t unanswered_ = 0;
  /// One owner's window: the number of parts in flight to it, and the parts that are queued because
  /// the window is full, the next one last.
  struct OwnerWindow {
    std::size_t in_flight = 0;
    std::vector<std::uint32_t> queued;
  };
  /// In the order of owners_.
  std::vector<OwnerWindow> windows_;
  OwnerWindow& window_of(OwnerId owner);
  /// The owner that each part was sent to, or not_sent.
  std::vector<OwnerId> sent_to_;

  /// The requests of workers that want a Notice when this worker has caught up, by worker.
  std::map<MemberId, NotifyRequest> notify_requests_;
  /// How often others have drawn this worker.
  std::uint64_t drawn_ = 0;
  Time step_started_at_{};
  Time wait_started_at_{};
  Time waited_{};
  StepTimes step_times_;
};

}  // namespace starling::core
