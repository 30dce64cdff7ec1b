/// The actor that collects results. It has a thread of its own, so a slow display or disk delays
/// nobody: no barrier and no update ever waits for it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "starling/actor/job/host.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/job/periodic_trigger.hpp"

namespace starling::actor {

/// True until an owner has sent the range.
[[nodiscard]] inline bool is_missing(const core::RangeState& state) { return !state.value.buffer; }

/// True where whole rounds are saved: in bulk-synchronous jobs.
[[nodiscard]] bool saves_rounds(const JobOptions& options);
/// The first round after `round` that is saved, for owners to know before the first push.
[[nodiscard]] core::Snapshot first_saved(const JobOptions& options, core::Step round);

///     running -> stopping -> collecting -> evaluating -> over
///        \--------(failure)----^
class ObserverHost : public actor::ObserverActor::base {
 public:
  using Deliver = std::function<void(Outcome)>;

  /// `first` is where each worker starts from; `deliver` is called once, with the outcome.
  ObserverHost(caf::actor_config& config, JobContextPtr job_context, const JobOptions& options,
               const std::vector<core::LedgerEntry>& first, Deliver deliver);

  actor::ObserverActor::behavior_type make_behavior() override;
  /// Drops the directory: members refer to each other, and a cycle would never be freed.
  void on_exit() override { directory_.reset(); }

 private:
  enum class Phase { running, stopping, collecting, evaluating, over };
  /// The purpose that the ranges' states are collected for.
  enum class Purpose { evaluate, save, last };
  /// The states of all ranges as they were asked for by one ticket.
  struct Collection {
    Purpose purpose;
    std::uint64_t ticket;
    /// The workers' mean step when they were asked for.
    double step;
    std::vector<core::RangeState> states;
    /// The step of each worker then, up to which its owners held all its updates.
    std::vector<core::LedgerEntry> settled;
  };

  void on_report(const actor::Report& report);
  void note_step(core::Step from, const actor::Report& report);
  void on_state(const core::RangeState& state);
  void settle(std::vector<core::LedgerEntry>& ledger,
              const std::vector<core::LedgerEntry>& settled) const;
  void on_evaluated(const actor::Evaluated& evaluated);
  void on_failure(const actor::Failure& failure);
  void on_tick();

  /// Runs a callback of the user's; what it throws ends the job.
  template <class F>
  void call(std::string_view callback, F&& run) {
    if (auto fault = fault_of(std::forward<F>(run)))
      on_failure({std::string{callback} + ": " + *std::move(fault)});
  }
  void save(const std::vector<core::RangeState>& states);
  void await_round(std::uint64_t ticket);
  void ask_for_round(core::Step round);
  void stop(Outcome::End why);
  void look_for_what_is_due();
  void collect(Purpose purpose);
  void collected(Collection collection);
  void evaluate_next();
  void evaluate(std::vector<core::RangeState> states, double step, bool last);
  [[nodiscard]] std::size_t evaluations_waiting() const;
  void drop_evaluations();
  void count_the_end();
  void ask_coordinator();
  void show();
  void check_target();
  void finish();
  void update_figures();
  void take_loss();
  [[nodiscard]] double mean_step() const;

  JobContextPtr job_context_;
  const JobOptions& options_;
  Deliver deliver_;
  actor::DirectoryPtr directory_;

  Phase phase_ = Phase::running;
  Outcome outcome_;
  Progress figures_;
  std::vector<actor::Report> reports_;
  std::vector<core::Time> ended_;
  std::size_t running_;
  double loss_sum_ = 0;
  std::uint64_t losses_ = 0;
  /// Steps computed in this run.
  std::uint64_t computed_ = 0;
  /// How many running workers are at each step, as far as they have reported.
  std::map<core::Step, std::size_t> standing_;

  /// The sum of the workers' steps as reported.
  std::uint64_t steps_sum_ = 0;

  std::uint64_t last_ticket_;
  /// In the order of their tickets. Evaluations stay until their turn comes.
  std::deque<Collection> collections_;
  /// How many evaluations may wait.
  std::size_t waiting_max_;
  /// The states that reached the target: the job's result, whatever the steps in flight then do.
  std::vector<core::RangeState> reached_;
  /// The ticket of the next round to be saved, whose states are in flight; 0 where no rounds are
  /// saved.
  std::uint64_t round_ticket_ = 0;
  std::vector<core::RangeState> round_states_;
  bool evaluating_ = false;
  /// The model that is being evaluated, and its step.
  std::vector<core::RangeState> evaluated_;
  double evaluated_at_ = 0;
  core::Time next_show_{};
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  core::Time give_up_ = core::Time::max();
};

}  // namespace starling::actor
