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
#include "starling/engine/core/worker/worker_view.hpp"

namespace starling::core {

/// One range that a worker wants to read, or rows of it.
struct RangeRows {
  RangeId range;
  Rows rows;
};

/// The update that a worker computed in one step: one part for each range that it concerns.
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
  /// The step to go on from; more than 0 when a job resumes.
  Step first = 0;
  /// Samples of the steps up to `first`.
  std::uint64_t samples = 0;
  /// The step after which the worker is done.
  Step last = barrier::finished;
  /// True where a coordinator keeps the steps; else the worker asks others itself.
  bool central = true;
  /// True where a range waits for a push of every worker in every step.
  bool bsp = false;
  /// True where the job says before each step which ranges it needs; else it needs all.
  bool plans = false;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// All workers of the job; needed where workers ask one another for their steps.
  Members members;
  /// The owner of each range.
  std::shared_ptr<const std::vector<OwnerId>> owner_of;
  /// The view of each range; absent where owners never change.
  std::shared_ptr<const std::vector<Epoch>> view_of = nullptr;
  /// True where the job runs already: the worker finds out at which step to begin.
  bool joins = false;
  /// At most this many ranges are pulled from one owner, or pushed to it, at once: this bounds the
  /// part of a large model that is in flight. At least 1.
  std::size_t window = 64;
  /// A step that failed this many times in a row ends the job.
  int attempts = 3;
};

/// One call at a time; not thread-safe. Repeated or late messages do no harm; only resume() asks
/// again for lost ones.
///
///     start -> [entering] -> [planning] -> pulling -> computing -> pushing -> waiting ->
///     [planning] ... -> done
///                  |                    |
///                  +-- (too often) -----+-> failed
class Worker {
 public:
  explicit Worker(WorkerOptions options);

  void start(const Context& context);

  /// The answer to Plan at `step`; ignored where the worker has moved on. Requires: each range at
  /// most once.
  void on_plan(const Context& context, Step step, std::vector<RangeRows> wanted);
  /// The answer to Compute at `step`; ignored where the worker has moved on.
  void on_update(const Context& context, Step step, Update update);
  /// Planning or computing at `step` threw: it is tried again, until after `attempts` failures the
  /// job is given up.
  void on_failure(const Context& context, Step step, const std::string& why);
  void on_timer(const Context& context);
  void on_left(const Context& context, MemberId worker);
  /// Owners or members have changed. Sends new owners the pushes and pulls that are not answered
  /// yet.
  void on_view(const Context& context, WorkerView view);

  void on(const Context& context, const Value& value);
  void on(const Context& context, const Ack& ack);
  void on(const Context& context, const Proceed& proceed);
  void on(const Context& context, const Stop& stop);
  void on(const Context& context, const StepQuery& query);
  void on(const Context& context, const StepAnswer& answer);
  void on(const Context& context, const NotifyRequest& request);
  void on(const Context& context, const Notice& notice);

  /// The core's driver was lost and replaced, and with it all messages, computations and timers in
  /// flight: asks again for all of them.
  void resume(const Context& context);

  /// Returns the status for a coordinator that does not know this worker yet. Where there is a
  /// coordinator, the core's driver sends it when the worker joins, because the worker itself does
  /// not ask at which step to begin. Requires: start() was called.
  [[nodiscard]] WorkerStatus status() const;

  [[nodiscard]] Step step() const noexcept { return step_; }
  /// Samples of the steps finished.
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Time spent waiting at barriers; updated when a wait ends.
  [[nodiscard]] Time waited() const noexcept { return waited_; }
  /// The same, with the present wait.
  [[nodiscard]] Time waited(Time now) const noexcept {
    return waiting() ? waited_ + (now - wait_began_) : waited_;
  }
  [[nodiscard]] bool waiting() const noexcept { return phase_ == Phase::waiting; }
  [[nodiscard]] bool done() const noexcept { return phase_ == Phase::done; }
  /// False until it knows its first step.
  [[nodiscard]] bool begun() const noexcept {
    return phase_ != Phase::idle && phase_ != Phase::entering && !is_entry_;
  }
  [[nodiscard]] const WorkerOptions& options() const noexcept { return options_; }
  /// Draws and passes of a barrier that asks other workers; zero in central mode.
  [[nodiscard]] SampleGate::Counts gate_counts() const;
  /// How often others have drawn this worker, and asked for its step.
  [[nodiscard]] std::uint64_t drawn() const noexcept { return drawn_; }

 private:
  enum class Phase { idle, entering, planning, pulling, computing, pushing, waiting, done, failed };

  void enter(const Context& context);
  void begin_at(const Context& context, Step first);
  void push_entry(const Context& context);
  void begin_step(const Context& context);
  /// Begins or passes, as the gate has allowed.
  void go_on(const Context& context);
  [[nodiscard]] Epoch view(RangeId range) const;
  [[nodiscard]] RangeId range_of(std::uint32_t part) const;
  [[nodiscard]] bool is_answered(std::uint32_t part) const;
  void send_all(const Context& context);
  void send_rest(const Context& context);
  void offer(const Context& context, std::uint32_t part);
  void send_part(const Context& context, std::uint32_t part);
  void on_answered(const Context& context, std::uint32_t part);
  void pull(const Context& context);
  void push(const Context& context);
  void arrive(const Context& context);
  void ask_to_pass(const Context& context);
  void pass(const Context& context);
  void finish(const Context& context);
  void send_ended(const Context& context) const;
  void send_ended_to_owners(const Context& context) const;
  void notify_waiters(const Context& context);
  [[nodiscard]] Step reported_step() const noexcept;

  WorkerOptions options_;
  std::optional<SampleGate> gate_;
  std::vector<OwnerId> owners_;

  Phase phase_ = Phase::idle;
  Step step_;
  std::uint64_t samples_;
  bool stopping_ = false;
  /// bsp only: the current push is the entry, after which the worker takes part.
  bool is_entry_ = false;
  int failures_ = 0;

  std::vector<RangeRows> plan_;
  /// The plan's answers; an unanswered one has no buffer.
  std::vector<Value> values_;
  /// Position in the plan by range, or UINT32_MAX.
  std::vector<std::uint32_t> position_;
  /// The update that is being pushed, by range, kept until every owner holds it; `unheld_` marks
  /// its unacknowledged parts.
  Update update_;
  std::vector<bool> unheld_;
  std::size_t missing_ = 0;
  /// Counts the parts of the plan or of the update that are in flight to one owner, and holds the
  /// parts that wait for capacity in the window, the first of them last.
  struct InFlight {
    std::size_t count = 0;
    std::vector<std::uint32_t> waiting;
  };
  /// By owner.
  std::vector<InFlight> in_flight_;
  /// The owner that each part was sent to, or not_asked.
  std::vector<OwnerId> asked_;

  /// The workers to notify when this worker has caught up, with their requests.
  std::map<MemberId, NotifyRequest> waiters_;
  std::uint64_t drawn_ = 0;
  Time step_began_{};
  Time wait_began_{};
  Time waited_{};
  StepTimes step_times_;
};

}  // namespace starling::core
