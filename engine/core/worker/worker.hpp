/// A worker's protocol: read the parameters, compute, write the update, and pass the barrier, step
/// after step. The member's exchange decides how parameters are read and updates are written
/// (engine/exchange/exchange.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"
#include "starling/engine/core/worker/worker_configuration.hpp"

namespace starling::core {

struct WorkerOptions {
  MemberId id = 0;
  Incarnation incarnation = 0;
  /// The number of steps that the worker has finished at the start; more than 0 if the job resumes
  /// from a checkpoint.
  Step first_step = 0;
  /// The number of samples of the steps up to `first_step`.
  std::uint64_t samples = 0;
  /// The worker ends after this step.
  Step last_step = barrier::unlimited;
  /// True if a coordinator keeps the workers' steps; false if workers ask one another.
  bool central = true;
  /// True in bulk-synchronous jobs whose exchange gathers the updates of a step: a worker that
  /// joins first announces itself (Enter), which counts as a step.
  bool bsp = false;
  /// True if the exchange is itself the barrier: an update counts once all workers have made the
  /// step, or the one before if rounds overlap with steps, and the exchange says at which step a
  /// worker that joins begins.
  bool exchange_is_barrier = false;
  /// True if the worker asks before each step which ranges the step needs (Plan). False if each
  /// step needs all ranges.
  bool asks_for_plan = false;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// All workers of the job, in ascending order.
  WorkerIds workers;
  /// True if the job runs already: the worker first asks at which step to begin.
  bool joins = false;
  /// True if the worker begins no step before on_deal().
  bool awaits_deal = false;
  /// The worker's part of the first deal begins after this number of its steps.
  Step deal_first_step = 0;
  /// The worker's part of the first deal, if batches are dynamic or workers hand in early.
  std::optional<DealPart> first_part = std::nullopt;
  /// The job fails when one step has failed this many times in a row.
  int attempts = 3;
};

/// One call at a time; not thread-safe. Repeated or late messages do no harm. Only its SampleGate
/// asks again after a time (StepQuery, NotifyRequest). No message but these and their answers may
/// get lost.
///
///     start -> [entering] -> [held] -> [planning] -> reading -> computing -> writing -> waiting
///                               ^                                                           |
///                               +-------------------- passes the barrier -------------------+
///
/// While samples or work are dealt anew, a worker is held before its next step.
///
/// The worker is done after its last step, or when it is stopped. It has failed if planning or
/// computing a step has failed `attempts` times in a row.
class Worker {
 public:
  /// See the diagram above.
  enum class Phase {
    idle,
    entering,
    held,
    planning,
    reading,
    computing,
    writing,
    waiting,
    done,
    failed
  };

  explicit Worker(WorkerOptions options);

  void start(const Context& context);

  /// The answer to the Plan effect of `step`; ignored if the worker has moved on. Requires:
  /// `plan` names each range at most once.
  void on_plan(const Context& context, Step step, std::vector<RangeRows> plan);
  /// The answer to the Read effect of `step`; ignored if the worker has moved on.
  void on_values(const Context& context, Step step, std::vector<Value> values);
  /// The answer to the Write or Enter effect of `step`; ignored if the worker has moved on. If the
  /// exchange is the barrier, `step` in the answer to an Enter is the step after which the worker
  /// begins. (A Write is of the step itself; Plan, Read and Compute are of the step after `step`.)
  void on_written(const Context& context, Step step);
  /// The answer to the Compute effect of `step`; ignored if the worker has moved on. `postponed` is
  /// how long a pause has postponed the computation.
  void on_update(const Context& context, Step step, Update update, Time postponed = {});
  /// Parts of the answer to the Compute effect of `step` that are final; ignored if the worker has
  /// moved on.
  void on_parts(const Context& context, Step step, EarlyParts parts);
  /// Planning or computing the step after `step` threw an exception. The worker asks for it again;
  /// after `attempts` failures in a row it ends the job (Fail).
  void on_failure(const Context& context, Step step, const std::string& why);
  void on_timer(const Context& context);
  /// Workers have joined or are gone.
  void on_workers(const Context& context, WorkerConfiguration next);
  /// From now on the worker begins no step until on_deal().
  void hold() noexcept { awaits_deal_ = true; }
  /// The samples or the work are dealt anew, and this is the worker's part; nullopt: it has none.
  /// Its present step, if there is one, still belongs to the former deal.
  void on_deal(const Context& context, std::optional<DealPart> part);

  void on(const Context& context, const Proceed& proceed);
  void on(const Context& context, const Stop& stop);
  /// The worker's member leaves. The worker does the same as on Stop.
  void leave(const Context& context);
  void on(const Context& context, const HandIn& hand_in);
  void on(const Context& context, const StepQuery& query);
  void on(const Context& context, const StepAnswer& answer);
  void on(const Context& context, const NotifyRequest& request);
  void on(const Context& context, const Notice& notice);

  /// Returns the status for a coordinator that does not know this worker yet. If there is a
  /// coordinator, the role Training sends it the status when the worker joins, because the worker
  /// itself does not ask the coordinator at which step to begin. Ends a run that another
  /// coordinator has permitted. Requires: start() was called.
  [[nodiscard]] WorkerStatus report_status();

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] Step step() const noexcept { return step_; }
  /// The number of samples of the finished steps.
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// The time spent waiting at barriers, without the current wait. If the exchange is the barrier,
  /// this is the time from having an update until it counts.
  [[nodiscard]] Time wait_time() const noexcept { return wait_time_; }
  /// The time spent waiting at barriers up to `now`, with the current wait.
  [[nodiscard]] Time wait_time(Time now) const noexcept {
    return is_waiting() ? wait_time_ + (now - wait_started_at_) : wait_time_;
  }
  /// The time since the worker started, up to `now` or to its end.
  [[nodiscard]] Time active_time(Time now) const noexcept {
    return (phase_ == Phase::done ? ended_at_ : now) - started_at_;
  }
  [[nodiscard]] bool is_waiting() const noexcept {
    return phase_ == Phase::waiting || waits_in_exchange();
  }
  /// Returns the laggard that decided the latest draw, if the worker waits at a barrier whose draw
  /// one laggard has decided; else nullopt.
  [[nodiscard]] std::optional<MemberId> laggard() const noexcept {
    return is_waiting() && gate_ ? gate_->laggard() : std::nullopt;
  }
  /// Returns for whom the worker has waited at the last barrier that it passed, as the coordinator
  /// says; nullopt without a coordinator.
  [[nodiscard]] std::optional<MemberId> awaited() const noexcept { return awaited_; }
  /// True if the worker would begin a step now, and waits for a deal.
  [[nodiscard]] bool is_held() const noexcept { return phase_ == Phase::held; }
  /// True if the worker was told to stop at the end of its step.
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }
  [[nodiscard]] bool is_done() const noexcept { return phase_ == Phase::done; }
  /// Returns false until the worker knows its first step and, in bulk-synchronous jobs, has
  /// announced itself.
  [[nodiscard]] bool begun() const noexcept {
    return phase_ != Phase::idle && phase_ != Phase::entering && !is_entry_ && !begins_first_;
  }
  /// Returns the number of steps that the worker has begun; nullopt until it has begun.
  [[nodiscard]] std::optional<Step> steps_begun() const noexcept;
  /// Returns how far the worker has got in the current deal.
  [[nodiscard]] DealProgress deal_progress() const;
  /// Returns the number of steps of the current deal that the worker has begun or, if workers hand
  /// in early, the number of samples that it has taken of the deal; nullopt if it has no part in
  /// the deal.
  [[nodiscard]] std::optional<std::uint64_t> dealt_taken() const noexcept;
  /// False if workers hand in early and the worker plans, reads or computes a step: only the update
  /// of the step will say how many samples the worker has taken.
  [[nodiscard]] bool knows_taken() const noexcept;
  /// Returns the number of samples that the worker has taken in all.
  [[nodiscard]] std::uint64_t samples_taken() const noexcept {
    return samples_ + samples_in_flight_;
  }
  /// Returns how many samples the worker has computed in which time: in the current deal or, if it
  /// has computed little of it, since the former deal. The time is that from having read the model
  /// to having the update.
  [[nodiscard]] WorkMeter::Done work_done() const { return work_meter_.done(); }
  /// Returns the step at which the worker asks again; meaningful while it goes on by a
  /// coordinator's permission.
  [[nodiscard]] Step run_end() const noexcept { return std::max(run_end_, step_ + 1); }
  [[nodiscard]] const WorkerOptions& options() const noexcept { return options_; }
  /// Returns the worker's SampleGate; nullptr in central mode.
  [[nodiscard]] const SampleGate* gate() const noexcept { return gate_ ? &*gate_ : nullptr; }
  /// The draws and passes of the worker's SampleGate; zero in central mode.
  [[nodiscard]] SampleGate::Counts draw_counts() const;
  /// How often others have drawn this worker and asked for its step.
  [[nodiscard]] std::uint64_t times_drawn() const noexcept { return times_drawn_; }

 private:
  void enter(const Context& context);
  void begin_at(const Context& context, Step first);
  void begin_step(const Context& context);
  void begin_deal(Step first_step);
  [[nodiscard]] bool is_last(Step step) const;
  [[nodiscard]] bool waits_in_exchange() const noexcept {
    return phase_ == Phase::writing && options_.exchange_is_barrier;
  }
  [[nodiscard]] bool hands_in_early() const noexcept { return part_ && part_->samples; }
  /// Returns true if workers hand in early, and the worker has taken all of its part of the deal.
  [[nodiscard]] bool has_taken_all() const noexcept;
  /// Returns true if the worker was told to hand in the current step.
  [[nodiscard]] bool must_hand_in() const noexcept { return hand_in_step_ > step_; }
  void compute(const Context& context);
  [[nodiscard]] WorkShare share_at(Step step) const;
  [[nodiscard]] WorkShare share_of_present_workers() const;
  /// Begins the first step or passes the barrier, after the gate has allowed it.
  void go_on(const Context& context);
  void read(const Context& context, std::optional<std::vector<RangeRows>> plan);
  void finish_step(const Context& context);
  void ask_to_pass_barrier(const Context& context);
  void pass_barrier(const Context& context);
  void finish(const Context& context);
  void send_ended(const Context& context) const;
  void notify_waiters(const Context& context);
  [[nodiscard]] Step reported_step() const noexcept;

  WorkerOptions options_;
  std::optional<SampleGate> gate_;

  Phase phase_ = Phase::idle;
  Step step_;
  /// The step after which the worker makes its first step.
  Step first_step_ = 0;
  /// The worker does not ask the coordinator before this step.
  Step run_end_ = 0;
  /// The step that all running workers have reached, by the coordinator's last Proceed.
  Step floor_ = 0;
  /// Proceed::awaited of the coordinator's last Proceed.
  std::optional<MemberId> awaited_;
  std::uint64_t samples_;
  bool stopping_ = false;
  bool is_leaving_ = false;
  /// True while the worker announces itself (Enter).
  bool is_entry_ = false;
  /// True while a worker that has joined before any other has begun waits for its deal, which says
  /// from which step it goes on.
  bool begins_first_ = false;
  /// The number of samples of the update that is being written.
  std::uint32_t samples_in_flight_ = 0;
  int failures_ = 0;
  /// This worker's part of the current step.
  WorkShare share_;
  /// If workers hand in early: the number of samples of the whole batch of the current step.
  std::uint64_t samples_of_step_ = 0;
  bool awaits_deal_;
  /// The highest step for which the worker was told to hand in; 0 if there is none.
  Step hand_in_step_ = 0;
  /// This worker's part of the current deal; absent in the first deal unless batches are dynamic or
  /// workers hand in early.
  std::optional<DealPart> part_;
  /// This worker's share in the former deal. In a bulk-synchronous job that divides its work, the
  /// worker still takes this share of the steps up to DealPart::common_first_step, because others
  /// may have begun such a step under the former deal.
  std::optional<WorkShare> former_share_;
  /// The worker's step when its part of the deal began; absent if it has not begun, or has no part.
  std::optional<Step> deal_first_step_;
  /// The number of samples that the worker had taken when its part of the deal began.
  std::uint64_t deal_first_samples_ = 0;
  /// True if the worker has a part in the current deal. In the first deal, all workers have one but
  /// those that join later.
  bool has_part_;

  /// The values that were read, kept until the update is there.
  std::vector<Value> values_;
  /// If the barrier moves with the descent of the loss: the values and the update of the last step
  /// that was computed, and the descent from the step before it to that step (barrier::Descent).
  std::shared_ptr<const FormerStep> former_;
  std::optional<barrier::Descent> descent_;

  /// The requests of workers that want a Notice when this worker has caught up, by worker.
  std::map<MemberId, NotifyRequest> notify_requests_;
  /// How often others have drawn this worker.
  std::uint64_t times_drawn_ = 0;
  /// When the worker started, and when it ended, if it has.
  Time started_at_{};
  Time ended_at_{};
  Time step_started_at_{};
  Time wait_started_at_{};
  Time wait_time_{};
  Time compute_started_at_{};
  StepTimes step_times_;
  WorkMeter work_meter_;
};

}  // namespace starling::core
