/// The training role: the members of the job compute updates of a model and apply them. It has the
/// member's worker, its exchange and, if this member is the coordinator, the Coordinator; if
/// samples are dealt, also the Dealer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/deals/dealer.hpp"
#include "starling/engine/core/role/role.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/core/training/question.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/core/worker/worker.hpp"

namespace starling::core {

class Training;

struct TrainingOptions {
  using Role = Training;
  Mode mode = Mode::peer;
  /// The options of this member's worker, if it has one. The caller sets `barrier`, `recheck`,
  /// `last_step`, `asks_for_plan` and `attempts`. The role sets all other fields, and replaces
  /// `barrier` by ASP if the exchange is itself the barrier.
  WorkerOptions worker;
  /// The role sets `self` and `bsp`, and `workers_max` to the limit of member ids if it is 0. This
  /// limit bounds the ledgers: every owner keeps one entry for each possible id in each range.
  ExchangeOptions exchange;
  /// How the training data is dealt; the caller sets all of it.
  DealOptions deal;
  /// The part of the first configuration for workers, if the caller has it: a process with many
  /// members makes it once for all of them.
  std::shared_ptr<const WorkerConfiguration> first_worker_configuration;
};

// --- the results of outputs; see Worker for all of them -----------------------------------------

/// The result of Plan.
struct PlanResult {
  Step step = 0;
  std::vector<RangeRows> plan;
};
/// Parts of the result of Compute.
struct PartsResult {
  Step step = 0;
  EarlyParts parts;
};
/// The result of Compute.
struct ComputeResult {
  Step step = 0;
  Update update;
  /// How long a pause has postponed the computation.
  Time postponed{};
};
/// Plan or Compute threw an exception.
struct StepFailure {
  Step step = 0;
  std::string why;
};

// Each returns true if the sender may send the message. An exchange has such functions for its own
// messages.
[[nodiscard]] bool is_valid(const MessageScope& scope, const Ended& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const Arrived& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const Proceed& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const Stop& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const BatchDone& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const HandIn& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const WorkerStatus& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const DealReport& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const NewDeal& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const DealReceived& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const BeginDeal& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const StepAnswer& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const RevisionRequest& m);
[[nodiscard]] bool is_valid(const MessageScope& scope, const CallForReports& m);
/// These messages name their sender, and no other field of them can be invalid.
template <class M>
requires IsIn<M, TypeList<StepQuery, NotifyRequest, Notice>>
[[nodiscard]] bool is_valid(const MessageScope& scope, const M& m) { return m.from == scope.from; }

/// One call at a time; not thread-safe. See the concept Role for the functions.
class Training {
 public:
  static constexpr std::string_view name = "training";
  using Messages = Concat<TypeList<WorkerStatus, DealReport, NewDeal, DealReceived, BeginDeal,
                                   RevisionRequest, CallForReports>,
                          core::Messages, ExchangeMessages>;
  /// ObservedState is a part of the answer to a Snapshot.
  using Outputs = TypeList<Plan, Compute, HandInNow, Done, ObservedState>;
  /// The observer asks for the states of this member's ranges by a Snapshot.
  using Inputs = TypeList<PlanResult, PartsResult, ComputeResult, StepFailure, Snapshot>;
  using Questions = TypeList<AskStep, AskSteps, AskValue>;
  using Answers = TypeList<WorkerStep, StepsReport, Value>;
  using Options = TrainingOptions;
  struct Scratch {
    Effects effects;
    ExchangeEffectLists exchange;
  };
  using Context = RoleContext<Messages, Outputs, Scratch>;

  Training(std::shared_ptr<const TrainingOptions> options, RoleSetup setup);

  void on_configuration(const Context& context, const ConfigurationPtr& next,
                        const ConfigurationPtr& former);
  void start(const Context& context);
  void on_timer(const Context& context, std::uint32_t key);
  /// Stops the worker at the end of its step and, in a job of one process, the coordinator, which
  /// then stops all workers. The member keeps and serves its ranges.
  void stop(const Context& context);
  void leave(const Context& context);
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] bool fits(const Configuration& configuration) const;

  template <class M>
  requires IsIn<M, ExchangeMessages>
  [[nodiscard]] bool on(const Context& context, MemberId from, const std::shared_ptr<const M>& m);
  /// The messages that the worker takes.
  template <class M>
  requires IsIn<M, TypeList<Proceed, Stop, HandIn, StepQuery, StepAnswer, NotifyRequest, Notice>>
  [[nodiscard]] bool on(const Context& context, MemberId from, const M& message);
  /// The messages that the coordinator takes; the exchange takes Ended too.
  template <class M>
  requires IsIn<M, TypeList<Arrived, Ended, BatchDone, WorkerStatus>>
  [[nodiscard]] bool on(const Context& context, MemberId from, const M& message);
  [[nodiscard]] bool on(const Context& context, MemberId from, const DealReport& report);
  [[nodiscard]] bool on(const Context& context, MemberId from, const NewDeal& next);
  [[nodiscard]] bool on(const Context& context, MemberId from, const DealReceived& receipt);
  [[nodiscard]] bool on(const Context& context, MemberId from, const BeginDeal& begin);
  [[nodiscard]] bool on(const Context& context, MemberId from, const RevisionRequest& request);
  [[nodiscard]] bool on(const Context& context, MemberId from, const CallForReports& call);

  void on(const Context& context, PlanResult& result);
  void on(const Context& context, PartsResult& result);
  void on(const Context& context, ComputeResult& result);
  void on(const Context& context, const StepFailure& failure);
  void on(const Context& context, const Snapshot& request);
  template <class Input>
  static constexpr bool takes_when_failed = std::is_same_v<Input, Snapshot>;

  template <class M>
  [[nodiscard]] bool is_valid(const MessageScope& scope, const M& message) const {
    return core::is_valid(exchange_scope(scope), message);
  }

  [[nodiscard]] std::variant<Refusal, WorkerStep> answer(const AskStep& question);
  [[nodiscard]] std::variant<Refusal, StepsReport> answer(const AskSteps& question);
  [[nodiscard]] std::variant<Refusal, Value> answer(const AskValue& question);
  template <class Q>
  [[nodiscard]] Result<MemberId> addressee(const Configuration& now, std::optional<MemberId> to,
                                           const Q& question) const;
  [[nodiscard]] bool is_valid_question(const MessageScope&, const auto&) const { return true; }
  [[nodiscard]] bool is_valid_question(const MessageScope& scope, const AskValue& asked) const {
    return exchange_scope(scope).has_range(asked.range);
  }
  [[nodiscard]] bool is_valid_answer(const MessageScope&, const auto&) const { return true; }
  [[nodiscard]] bool is_valid_answer(const MessageScope& scope, const Value& value) const {
    return exchange_scope(scope).fits_range(value.range, value.value);
  }
  static bool is_answer(const auto&, const auto&) { return false; }
  static bool is_answer(const WorkerStep&, const AskStep&) { return true; }
  static bool is_answer(const StepsReport&, const AskSteps&) { return true; }
  static bool is_answer(const Value& value, const AskValue& question);

  [[nodiscard]] Placement placement() const;
  [[nodiscard]] std::vector<RangeId> full_ranges() const;
  [[nodiscard]] std::uint64_t full_ranges_version() const;

  [[nodiscard]] const TrainingOptions& options() const noexcept { return *options_; }
  /// Returns the step with which this member's worker begins, if it is known from the start, else
  /// 0.
  [[nodiscard]] Step first_step() const noexcept { return first_entry_.step; }
  /// Returns nullptr if this member has no worker.
  [[nodiscard]] const Worker* worker() const noexcept { return worker_ ? &*worker_ : nullptr; }
  /// Returns the sums of the staleness s and of the sample size beta (barrier::Tuned) over the
  /// workers whose barriers this member knows: its own or, if it is the coordinator, all. All zero
  /// unless the barrier tunes itself.
  [[nodiscard]] barrier::TunedSum tuned() const;
  /// Returns how often the barriers that this member knows have drawn: its worker's own, or those
  /// of all workers if it is the coordinator.
  [[nodiscard]] SampleGate::Counts draw_counts() const;
  /// Returns nullptr if this member is not the coordinator.
  [[nodiscard]] const Coordinator* coordinator() const noexcept { return coordinator_.get(); }
  /// Returns nullptr if the job deals neither samples nor work, or deals them only once.
  [[nodiscard]] const Dealer* dealer() const noexcept { return dealer_.get(); }
  [[nodiscard]] const AnyExchange& exchange() const noexcept { return exchange_; }
  /// Returns the exchange as an E. Requires: the job uses this exchange.
  template <Exchange E>
  [[nodiscard]] E& exchange() {
    return std::get<E>(exchange_);
  }
  template <Exchange E>
  [[nodiscard]] const E& exchange() const {
    return std::get<E>(exchange_);
  }
  /// Counts what this member's worker has read, as in the concept Exchange.
  [[nodiscard]] ReadCounts read_counts() const;
  /// Returns how far each worker has got, by the updates that this member holds.
  [[nodiscard]] std::vector<WorkerProgress> progress() const;

 private:
  // The keys of the timers.
  static constexpr std::uint32_t worker_key = 0;
  static constexpr std::uint32_t coordinator_key = 1;
  static constexpr std::uint32_t exchange_key = 2;

  /// Calls `event(worker, context)` and executes the worker's effects; does nothing if this member
  /// has no worker. run_coordinator() does the same with the coordinator.
  template <class Event>
  void run_worker(const Context& context, Event event);
  template <class Event>
  void run_coordinator(const Context& context, Event event);
  template <class Part, class Event>
  void run(const Context& context, Part& part, std::uint32_t key, Event event);
  /// Calls `event(exchange, context)` and executes the exchange's effects. Returns the event's
  /// result, or true if it has none.
  template <class Event>
  bool run_exchange(const Context& context, Event event);
  /// Executes the effects of the worker or coordinator; `key` is the key of their timers.
  void execute(const Context& context, Effects effects, std::uint32_t key);
  /// Executes an effect of the exchange.
  template <class M>
  void execute(const Context& context, SendToMember<M>& send);
  void execute(const Context& context, const SetTimer& timer);
  void execute(const Context& context, ReadDone& done);
  void execute(const Context& context, const Written& written);
  void execute(const Context& context, ObservedState& observed);
  void execute(const Context& context, Fail& failure);

  void inform_exchange(const Context& context, const Configuration* former);
  void inform_coordinator(const Context& context, const Configuration* former);
  void inform_worker(const Context& context, const Configuration* former);
  void report_deal(const Context& context);
  void ask_for_revision(const Context& context);
  void send_status(const Context& context, const Configuration* former);
  [[nodiscard]] WorkerOptions worker_options();
  [[nodiscard]] std::size_t range_count() const;
  [[nodiscard]] ExchangeScope exchange_scope(const MessageScope& scope) const {
    return {scope, *options_->exchange.layout, options_->exchange.applier->element_bytes()};
  }

  std::shared_ptr<const TrainingOptions> options_;
  Member self_;
  /// True if the job runs already when this member starts.
  bool joins_;
  /// The worker's progress at the start of the job.
  LedgerEntry first_entry_;
  ConfigurationPtr configuration_;
  std::optional<Worker> worker_;
  AnyExchange exchange_;
  /// nullptr if this member is not the coordinator.
  std::unique_ptr<Coordinator> coordinator_;
  /// nullptr if the job deals neither samples nor work. Also nullptr in a job of one process, whose
  /// members never change, unless the job deals anew without a change of members
  /// (DealOptions::dynamic or by_samples).
  std::unique_ptr<Dealer> dealer_;
  /// True while a report waits for the worker's present update.
  bool is_report_due_ = false;
};

template <class Q>
Result<MemberId> Training::addressee(const Configuration& now, std::optional<MemberId> to,
                                     const Q& question) const {
  if constexpr (std::is_same_v<Q, AskSteps>) {
    if (!to) to = now.coordinator;
    if (!to) return Error{"no member keeps the steps of all workers in this mode"};
  } else if constexpr (std::is_same_v<Q, AskValue>) {
    const std::size_t count = options_->exchange.layout->ranges.size();
    if (question.range >= count)
      return Error{"range " + std::to_string(question.range) + ": valid: below " +
                   std::to_string(count)};
    if (!to) to = exchange_answerer(options_->exchange.name, now, question.range);
  }
  if (!to) return Error{"no member is named"};
  return *to;
}

}  // namespace starling::core
